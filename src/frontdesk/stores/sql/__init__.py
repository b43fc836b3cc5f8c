"""The state store on SQL: SQLite for one machine, Postgres for many, with one schema."""
