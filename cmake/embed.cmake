# SPDX-License-Identifier: Apache-2.0
# Turns files into one C table: cmake -DOUT=file.c -DLIST=name -DFILES="a.sql;b.sql" -DHEADER=file.h -DTYPE="struct x" -P embed.cmake
# The table has the names of the files, without the extensions .sql and .verdict.sql. Files of a folder with parts/ are read by parts.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/parts.cmake)
set(arrays "")
set(rows "")
set(n 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  get_filename_component(folder ${file} DIRECTORY)
  string(REGEX REPLACE "(\\.verdict)?\\.sql$" "" name ${name})
  if(IS_DIRECTORY ${folder}/parts)
    sql_read(${file} text)
    string(HEX "${text}" hex)
  else()
    file(READ ${file} hex HEX)
  endif()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const char sql_${n}[] = {${bytes}0};\n")
  string(APPEND rows "\t{\"${name}\", sql_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT}.new "/* Made by cmake/embed.cmake. */
#include \"${HEADER}\"

${arrays}
const ${TYPE} ${LIST}[] = {
${rows}\t{0, 0},
};
")
file(RENAME ${OUT}.new ${OUT})
