"""``python -m pegfan``: the command line, for this interpreter."""

from pegfan.cli import app

if __name__ == "__main__":
    app(prog_name="pegfan")
