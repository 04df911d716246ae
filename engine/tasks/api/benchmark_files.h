#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvscope::engine {

/// Calls `use` with the text and the number, from 1, of each element of a JSON array and the line in which the element
/// begins, until `use` returns false. The elements need not be valid. Does nothing if the text is no array.
void for_each_element(std::string_view text,
                      const std::function<bool(std::string_view element, int number, int line)>& use);

/// Calls `use` with the text of each record of a file, its number and its line, both from 1, until `use` returns false.
/// Records are the elements of a JSON array, or else the lines with text (JSONL), whose numbers are their lines.
void for_each_record(std::string_view text,
                     const std::function<bool(std::string_view record, int number, int line)>& use);

/// Refuses a file of samples for `task` whose first record has the fields of another benchmark.
/// @throws UsageError with the file and the benchmark
void refuse_other_benchmark(std::string_view text, const std::string& file, std::string_view task);

}  // namespace kvscope::engine
