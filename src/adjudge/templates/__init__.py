"""How pages and reports look: one stylesheet, the parts that every page is made of, and what fills them in safely."""
