#pragma once

#include "trace/reader.h"
#include "trace/records/record_fields.h"

namespace kvscope::trace {

/// Reads a data set of a record if the trace has it.
struct FillFrom {
    const Reader& reader;
    Place place;

    template <class T>
    void operator()(const schema::DataSet& data_set, std::vector<T>& values) const {
        if (reader.has(place, data_set)) values = reader.read<T>(place, data_set);
    }
    void operator()(const schema::DataSet& data_set, std::vector<std::string>& values) const {
        if (reader.has(place, data_set)) values = reader.token_text(place.prompt);
    }
};

[[nodiscard]] inline ModelRecord model_record(const Reader& reader) {
    ModelRecord record;
    static_cast<ModelAttributes&>(record) = reader.model();
    for_each_model_data_set(record, FillFrom{reader, Place::of_model()});
    return record;
}

[[nodiscard]] inline PromptRecord prompt_record(const Reader& reader, int prompt) {
    PromptRecord record;
    static_cast<PromptAttributes&>(record) = reader.prompt(prompt);
    for_each_prompt_data_set(record, FillFrom{reader, Place::of_prompt(prompt)});
    return record;
}

}  // namespace kvscope::trace
