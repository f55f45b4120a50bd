/* What Python calls (see pegfan/_compiled.py); cffi reads this file, so it holds declarations and nothing else. */

/* framelets.c */

