// An OpenID Connect provider that we did not write. Prints its address; ends with its standard input.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const server = createServer().listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: process.env.CLIENT_ID,
        client_secret: process.env.CLIENT_SECRET,
        redirect_uris: [process.env.REDIRECT_URI],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "preferred_username"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: "Ada", preferred_username: id, email: `${id}@example.com`, email_verified: true }),
    }),
    pkce: { required: () => true },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.resume().on("end", () => process.exit(0));
