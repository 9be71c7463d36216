# SPDX-License-Identifier: Apache-2.0
# sql_read(FILE VARIABLE): the text of a file; a line "$(NAME)" of it becomes the text of parts/NAME.sql of its folder.
function(sql_read file variable)
  file(READ ${file} text)
  get_filename_component(folder ${file} DIRECTORY)
  string(REGEX MATCHALL " *[$][(][a-z_]+[)]\n" places "${text}")
  foreach(place IN LISTS places)
    string(REGEX REPLACE "[^a-z_]" "" name "${place}")
    file(READ ${folder}/parts/${name}.sql part)
    string(REPLACE "${place}" "${part}" text "${text}")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()
