#pragma once

#include <string>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the reason for which a trace lacks a data set, as the end of a message, if its recipe says that it stores
/// only measures or rows of results; "" otherwise.
[[nodiscard]] std::string why_data_is_missing(const trace::Reader& reader, const trace::schema::DataSet& data_set);

/// @throws NothingToShow if the trace lacks the data set
void require_data(const trace::Reader& reader, trace::Place place, const trace::schema::DataSet& data_set);

}  // namespace kvscope::analysis
