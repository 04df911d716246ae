#include "trace/load_records.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "trace/hdf5/hdf5.h"
#include "trace/records/record_fields.h"
#include "trace/records/storable_text.h"
#include "trace/result_table.h"

namespace kvscope::trace {

namespace {

const char* kind_name(const h5::Value& value) {
    if (value.is_list) return "a list";
    switch (value.kind) {
        case h5::Value::Kind::text:
            return "a text";
        case h5::Value::Kind::integer:
            return "an integer";
        case h5::Value::Kind::real:
            return "a number";
        case h5::Value::Kind::other:
            break;
    }
    return "another type";
}

struct LoadAttribute {
    hid_t object;
    const std::string& where;

    void operator()(const char* name, std::string& out) const {
        const h5::Value value = require(name);
        if (value.kind != h5::Value::Kind::text || value.texts.size() != 1) wrong(name, "a text", value);
        out = value.texts.front();
    }
    void operator()(const char* name, std::int64_t& out) const { out = integer(name, require(name)); }
    void operator()(const char* name, std::uint64_t& out) const {
        out = static_cast<std::uint64_t>(integer(name, require(name)));
    }
    void operator()(const char* name, bool& out) const { out = integer(name, require(name)) != 0; }
    void operator()(const char* name, double& out) const { out = real(name, require(name)); }
    void operator()(const char* name, std::vector<std::int32_t>& out) const {
        const h5::Value value = require(name);
        // h5py stores an empty list as floating-point numbers.
        if (value.kind != h5::Value::Kind::integer && !value.reals.empty()) wrong(name, "a list of integers", value);
        out.assign(value.integers.begin(), value.integers.end());
    }
    void operator()(const char* name, std::optional<int>& out) const {
        const auto value = h5::read_attribute(object, name);
        if (!value) return;
        const std::int64_t found = integer(name, *value);
        if (found < 0 || found > std::numeric_limits<int>::max()) {
            throw DamagedTrace(fmt::format("{}: attribute {}: expected an index, found {}", where, name, found));
        }
        out = static_cast<int>(found);
    }
    void operator()(const char* name, std::optional<std::string>& out) const {
        const auto value = h5::read_attribute(object, name);
        if (!value) return;
        if (value->kind != h5::Value::Kind::text || value->texts.size() != 1) wrong(name, "a text", *value);
        out = value->texts.front();
    }
    void operator()(const char* name, std::optional<double>& out) const {
        if (const auto value = h5::read_attribute(object, name)) out = real(name, *value);
    }
    void operator()(const char* name, std::optional<std::uint64_t>& out) const {
        if (const auto value = h5::read_attribute(object, name)) {
            out = static_cast<std::uint64_t>(integer(name, *value));
        }
    }

 private:
    h5::Value require(const char* name) const {
        auto value = h5::read_attribute(object, name);
        if (!value) throw DamagedTrace(fmt::format("{}: the attribute {} is missing", where, name));
        return *std::move(value);
    }
    [[noreturn]] void wrong(const char* name, const char* expected, const h5::Value& found) const {
        throw DamagedTrace(
            fmt::format("{}: attribute {}: expected {}, found {}", where, name, expected, kind_name(found)));
    }
    std::int64_t integer(const char* name, const h5::Value& value) const {
        if (value.kind != h5::Value::Kind::integer || value.integers.size() != 1) wrong(name, "an integer", value);
        return value.integers.front();
    }
    double real(const char* name, const h5::Value& value) const {
        if (value.reals.size() != 1) wrong(name, "a number", value);
        return value.reals.front();
    }
};

void require_range(const std::string& where, const char* name, std::int64_t value, std::int64_t low) {
    if (value < low || value > std::numeric_limits<std::int32_t>::max()) {
        throw DamagedTrace(fmt::format("{}: attribute {}: expected {} or more, found {}", where, name, low, value));
    }
}

}  // namespace

ModelAttributes load_model(hid_t group, const std::string& where) {
    ModelAttributes out;
    for_each_model_attribute(out, LoadAttribute{group, where});
    require_range(where, "n_layers", out.n_layers, 1);
    require_range(where, "n_heads", out.n_heads, 1);
    require_range(where, "n_kv_heads", out.n_kv_heads, 1);
    require_range(where, "head_dim", out.head_dim, 1);
    require_range(where, "hidden_size", out.hidden_size, 1);
    require_range(where, "vocab_size", out.vocab_size, 1);
    return out;
}

PromptAttributes load_prompt(hid_t group, const std::string& where) {
    PromptAttributes out;
    const LoadAttribute load{group, where};
    for_each_prompt_attribute(out, load);
    require_range(where, "n_tokens", out.n_tokens, 1);
    require_range(where, "n_context", out.n_context, 0);
    if (out.n_context > out.n_tokens) {
        throw DamagedTrace(fmt::format("{}: attribute n_context: expected at most n_tokens, which is {}, found {}",
                                       where, out.n_tokens, out.n_context));
    }
    const std::string full_name(schema::root::full_group);
    if (h5::is_group(group, full_name)) {
        const h5::Handle full = h5::open_group(group, full_name);
        const std::string at = where + "/" + full_name;
        LoadAttribute{full.get(), at}(schema::prompt::window_attribute.data(), out.window);
        require_range(at, "window", out.window, 0);
    }
    return out;
}

RunAttributes load_run(hid_t group, const std::string& where) {
    RunAttributes out;
    for_each_run_attribute(out, LoadAttribute{group, where});
    const auto require_one_of = [&](const char* name, const std::string& value, std::string_view a,
                                    std::string_view b) {
        if (value != a && value != b) {
            throw DamagedTrace(
                fmt::format("{}: attribute {}: expected {} or {}, found {}", where, name, a, b, quoted_text(value)));
        }
    };
    require_one_of("granularity", out.granularity, schema::run::granularity_kv_head,
                   schema::run::granularity_query_head);
    require_one_of("status", out.status, schema::run::status_complete, schema::run::status_failed);
    require_one_of("mode", out.mode, schema::run::mode_shared, schema::run::mode_isolated);
    return out;
}

std::optional<int> load_score_source_run_number(hid_t run_group, const std::string& where) {
    std::optional<int> run;
    LoadAttribute{run_group, where}(schema::run::scores_of_attribute.data(), run);
    return run;
}

namespace {

struct MoveColumn {
    void operator()(const char* from, std::string& to) const { to = from == nullptr ? "" : from; }
    void operator()(std::int64_t from, std::int64_t& to) const { to = from; }
    void operator()(double from, double& to) const { to = from; }
};

bool same_kind(hid_t stored, H5T_class_t wanted) {
    const H5T_class_t found = H5Tget_class(stored);
    return found == wanted || (wanted == H5T_FLOAT && found == H5T_INTEGER);
}

}  // namespace

std::vector<ResultRow> load_results(hid_t table, const std::string& where) {
    const std::string action = "read the table";
    const h5::DataSetInfo found = h5::data_set_info(table);
    const h5::Handle stored(h5::checked(H5Dget_type(table), action), H5Tclose);
    if (found.shape.size() != 1 || H5Tget_class(stored.get()) != H5T_COMPOUND) {
        throw DamagedTrace(fmt::format("{}: expected a table with one row per sample, found {} of rank {}", where,
                                       found.type, found.shape.size()));
    }
    const h5::Handle wanted = result_table_type();
    const int columns = H5Tget_nmembers(wanted.get());
    for (int i = 0; i < columns; ++i) {
        char* name = H5Tget_member_name(wanted.get(), static_cast<unsigned>(i));
        const std::string column = name == nullptr ? "" : name;
        H5free_memory(name);
        const int at = H5Tget_member_index(stored.get(), column.c_str());
        if (at < 0) throw DamagedTrace(fmt::format("{}: the column {} is missing", where, column));
        const h5::Handle type(h5::checked(H5Tget_member_type(stored.get(), static_cast<unsigned>(at)), action),
                              H5Tclose);
        const h5::Handle ours(h5::checked(H5Tget_member_type(wanted.get(), static_cast<unsigned>(i)), action),
                              H5Tclose);
        const H5T_class_t kind = H5Tget_class(ours.get());
        if (!same_kind(type.get(), kind) || (kind == H5T_STRING && H5Tis_variable_str(type.get()) <= 0)) {
            throw DamagedTrace(fmt::format("{}: column {}: expected {}, found {}", where, column,
                                           kind == H5T_STRING ? "text of variable length" : h5::type_name(ours.get()),
                                           h5::type_name(type.get())));
        }
    }
    if (!h5::is_plausible_size(found.bytes, found.stored_bytes)) {
        throw DamagedTrace(
            fmt::format("{}: {} rows are too many for {} stored bytes", where, found.shape[0], found.stored_bytes));
    }

    std::vector<PackedResultRow> packed(found.shape[0]);
    std::vector<ResultRow> out(packed.size());
    if (packed.empty()) return out;
    h5::checked(H5Dread(table, wanted.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.data()), action);
    for (std::size_t i = 0; i < packed.size(); ++i) {
        const auto& from = packed[i];
        auto& to = out[i];
        const MoveColumn move;
        move(from.sample_id, to.sample_id);
        move(from.prompt_hash, to.prompt_hash);
        move(from.policy, to.policy);
        move(from.parameters_json, to.parameters_json);
        move(from.budget, to.budget);
        move(from.budget_fraction, to.budget_fraction);
        move(from.length, to.length);
        move(from.depth, to.depth);
        move(from.prediction, to.prediction);
        move(from.answers_json, to.answers_json);
        move(from.metric, to.metric);
        move(from.scored_as, to.scored_as);
        move(from.score, to.score);
        move(from.seconds, to.seconds);
        move(from.kept_share, to.kept_share);
        move(from.status, to.status);
    }
    const h5::Handle space(h5::checked(H5Dget_space(table), action), H5Sclose);
    H5Dvlen_reclaim(wanted.get(), space.get(), H5P_DEFAULT, packed.data());
    return out;
}

}  // namespace kvscope::trace
