# cmake -D PAGE=<file> -D OUTPUT=<file.cc> -P EmbedPage.cmake: writes the page as kPage of tools/serve/service.h.
file(READ ${PAGE} content)
# Compilers limit the length of one literal; neighbours are joined.
string(LENGTH "${content}" length)
set(literals "")
set(position 0)
while(position LESS length)
  string(SUBSTRING "${content}" ${position} 8000 part)
  string(APPEND literals "R\"~page~(${part})~page~\"\n")
  math(EXPR position "${position} + 8000")
endwhile()
file(WRITE ${OUTPUT} "#include \"tools/serve/service.h\"\nnamespace braiddb::tools {\nconst char kPage[] =\n${literals};\n}\n")
