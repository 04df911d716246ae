#include "trace/load_records.h"

#include <fmt/format.h>

#include <limits>

#include "trace/hdf5/hdf5.h"
#include "trace/records/record_fields.h"
#include "trace/records/storable_text.h"

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
    void operator()(const char* name, int& out) const {
        const std::int64_t found = integer(name, require(name));
        if (found < 0 || found > std::numeric_limits<int>::max()) {
            throw DamagedTrace(fmt::format("{}: attribute {}: expected an index, found {}", where, name, found));
        }
        out = static_cast<int>(found);
    }
    template <class T>
    void operator()(const char* name, std::optional<T>& out) const {
        if (h5::checked(H5Aexists(object, name), fmt::format("read the attribute {}", name)) > 0)
            (*this)(name, out.emplace());
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

}  // namespace kvscope::trace
