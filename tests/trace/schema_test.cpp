// The lists of schema.h and record_fields.h contain the same names.
#include "trace/records/schema.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "trace/records/record_fields.h"

using namespace kvscope::trace;

namespace {

template <class List>
std::set<std::string> names_of(const List& attributes) {
    std::set<std::string> out;
    for (const auto& attribute : attributes) out.emplace(attribute.name);
    return out;
}

template <class List>
std::set<std::string> paths_of(const List& data_sets) {
    std::set<std::string> out;
    for (const auto* data_set : data_sets) out.emplace(data_set->path);
    CHECK(out.size() == std::size(data_sets));
    return out;
}

template <class Walk>
std::set<std::string> walked(Walk walk) {
    std::set<std::string> out;
    walk([&](const auto& name, const auto&) {
        if constexpr (requires { name.path; }) {
            out.emplace(name.path);
        } else {
            out.emplace(name);
        }
    });
    return out;
}

}  // namespace

TEST_CASE("writer and reader know exactly the names of the schema", "[trace]") {
    ModelRecord model;
    PromptRecord prompt;
    RunRecord run;
    CHECK(walked([&](auto v) { for_each_model_attribute(model, v); }) == names_of(schema::model::attributes));
    CHECK(walked([&](auto v) { for_each_model_data_set(model, v); }) == paths_of(schema::model::data_sets));
    CHECK(walked([&](auto v) { for_each_prompt_attribute(prompt, v); }) == names_of(schema::prompt::attributes));
    CHECK(walked([&](auto v) { for_each_prompt_data_set(prompt, v); }) == paths_of(schema::prompt::data_sets));
    CHECK(walked([&](auto v) { for_each_run_attribute(run, v); }) == names_of(schema::run::attributes));
    CHECK(walked([&](auto v) { for_each_run_data_set(run, v); }) == paths_of(schema::run::data_sets));
}
