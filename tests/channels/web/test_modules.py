"""Joining modules: what the joined one does, and what is refused instead of being left out."""

import subprocess

import pytest

from frontdesk.channels.web.pages import STATIC, join_modules
from tests.node_program import need_node

FILES = {
    "first.js": '// First.\n\nimport { twice as double } from "./lib/math.js";\nimport { name } from "./names.js";\n\n'
    "export const said = `${name} import x ${double(4)}`;\nconsole.log(said, typeof twice);\n",
    "lib/math.js": '/* @license L */import{one as o,zero}from"./one.js";'
    "const d=n=>n*2+o-1+zero;export{d as twice};\n//# sourceMappingURL=math.js.map\n",
    "lib/one.js": "export const one = 1;\nexport const zero = 0;\n",
    "names.js": "export function name() {}\nexport class Named {}\n"
    'export async function later() {\n  return import("./lib/one.js");\n}\n',
}


def test_a_joined_module_does_what_its_modules_do() -> None:
    joined = join_modules({**FILES, "names.js": 'export const name = "n";\n'}, "first.js")
    done = subprocess.run(
        [need_node("NOT TESTED: that joined modules run"), "--input-type=module", "-"],
        input=joined.text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("n import x 8 undefined\n", "")
    assert "@license L" in joined.text
    assert "sourceMappingURL" not in joined.text
    assert joined.text.index("// lib/one.js") < joined.text.index("// lib/math.js") < joined.text.index("// first.js")


def test_what_is_imported_later_is_named() -> None:
    assert join_modules(FILES, "first.js").later == {"lib/one.js"}
    with pytest.raises(ValueError, match=r"gone\.js is imported dynamically"):
        join_modules({"a.js": 'import("./gone.js");'}, "a.js")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('import * as all from "./b.js";', "can't be joined"),
        ('import all from "./b.js";', "can't be joined"),
        ('import "./b.js";', "can't be joined"),
        ('let x = 1;\nimport { b } from "./b.js";', "can't be joined"),
        ("export default 1;", "can't be joined"),
        ("export let b = 1;", "can't be joined"),
        ('export { b } from "./b.js";', "can't be joined"),
        ("const b = await import(name);", "can't be joined"),
        ('import { b, "c d" } from "./b.js";', "not a valid name"),
        ('import { c } from "./b.js";', "imports c, which b.js does not export"),
        ('import { c } from "./c.js";', "c.js is imported by a.js, and does not exist"),
        ('import { d } from "./d.js";', "a.js has a circular import through d.js"),
    ],
)
def test_what_can_not_be_joined_is_refused(text: str, reason: str) -> None:
    files = {"a.js": text, "b.js": "export const b = 1;", "d.js": 'import { a } from "./a.js";\nexport const d = a;'}
    with pytest.raises(ValueError, match=reason):
        join_modules(files, "a.js")


def test_modules_of_others_are_joined_unchanged() -> None:
    files = {path.relative_to(STATIC).as_posix(): path.read_text() for path in STATIC.rglob("*.js")}
    joined = join_modules({**files, "catalogue.js": "export const catalogue = {};"}, "chat.js").text
    repeat = files["vendor/lit-html/directives/repeat.js"]
    assert repeat[repeat.index("const u=") : repeat.index("export{")] in joined
