#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trace/checks/problem_list.h"
#include "trace/hdf5/hdf5.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

namespace {

std::string describe(const h5::Value& value) {
    return fmt::format("{}{}", value.is_list ? "a list of " : "", value.type);
}

const char* describe(schema::AttributeType type) {
    switch (type) {
        case schema::AttributeType::text:
            return "text";
        case schema::AttributeType::integer:
            return "an integer";
        case schema::AttributeType::real:
            return "a number";
        case schema::AttributeType::integers:
            return "a list of integers";
        case schema::AttributeType::flag:
            return "0 or 1";
    }
    return "";
}

bool fits(const h5::Value& value, schema::AttributeType type) {
    using Kind = h5::Value::Kind;
    switch (type) {
        case schema::AttributeType::text:
            return value.kind == Kind::text && value.texts.size() == 1;
        case schema::AttributeType::integer:
            return value.kind == Kind::integer && value.integers.size() == 1;
        case schema::AttributeType::real:
            return value.reals.size() == 1;
        case schema::AttributeType::integers:
            return value.kind == Kind::integer || value.reals.empty();
        case schema::AttributeType::flag:
            return value.kind == Kind::integer && value.integers.size() == 1 &&
                   (value.integers[0] == 0 || value.integers[0] == 1);
    }
    return false;
}

std::string value_text(const h5::Value& value) {
    return value.kind == h5::Value::Kind::integer && value.integers.size() == 1 ? std::to_string(value.integers[0])
                                                                                : describe(value);
}

std::string shape_text(const schema::DataSet& data_set, const Extents& extents) {
    std::vector<std::string> out;
    for (int i = 0; i < data_set.rank; ++i) {
        const auto extent = extents.of(data_set.dims[static_cast<std::size_t>(i)]);
        out.push_back(extent ? std::to_string(*extent) : "any");
    }
    return fmt::format("({})", fmt::join(out, ", "));
}

bool shape_fits(const std::vector<std::size_t>& shape, const schema::DataSet& data_set, const Extents& extents) {
    if (shape.size() != static_cast<std::size_t>(data_set.rank)) return false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto extent = extents.of(data_set.dims[i]);
        if (extent && shape[i] != *extent) return false;
    }
    return true;
}

bool type_fits(const h5::DataSetInfo& found, schema::Type type) {
    if (type == schema::Type::f32_or_f64) {
        return found.element == schema::Type::f32 || found.element == schema::Type::f64;
    }
    if (type == schema::Type::f32_or_u16) {
        return found.element == schema::Type::f32 || found.element == schema::Type::u16;
    }
    return found.element == type;
}

}  // namespace

void check_attributes(hid_t object, const std::string& path, std::span<const schema::Attribute> attributes,
                      Problems& problems) {
    for (const schema::Attribute& attribute : attributes) {
        const std::string at = fmt::format("{}@{}", path, attribute.name);
        try {
            const auto value = h5::read_attribute(object, std::string(attribute.name));
            if (!value) {
                if (attribute.need == schema::Need::always) {
                    problems.error(at, fmt::format("{}: {}", describe(attribute.type), attribute.meaning), "nothing");
                }
            } else if (!fits(*value, attribute.type)) {
                problems.error(at, describe(attribute.type), value_text(*value));
            } else if (attribute.type == schema::AttributeType::text &&
                       storable_text(value->texts.front()) != value->texts.front()) {
                problems.error(at, "text in UTF-8", quoted_text(value->texts.front()));
            }
        } catch (const h5::Failure& failure) {
            problems.error(at, describe(attribute.type), failure.what());
        }
    }
}

Sound check_data_sets(hid_t file, const std::string& group, std::span<const schema::DataSet* const> data_sets,
                      const Extents& extents, const Sound& excused, Problems& problems) {
    Sound sound;
    for (const schema::DataSet* data_set : data_sets) {
        const std::string at = fmt::format("{}/{}", group, data_set->path);
        const std::string expected =
            fmt::format("{} of shape {}", h5::type_name(data_set->type), shape_text(*data_set, extents));
        try {
            if (!h5::exists(file, at)) {
                if (data_set->need == schema::Need::sometimes || excused.contains(data_set)) continue;
                if (data_set->need == schema::Need::always) {
                    problems.error(at, fmt::format("{}: {}", expected, data_set->meaning), "nothing");
                } else {
                    problems.warning(at, fmt::format("{}: {}", expected, data_set->meaning), "nothing was recorded");
                }
                continue;
            }
            const h5::DataSetInfo found = h5::data_set_info(h5::open_data_set(file, at).get());
            if (type_fits(found, data_set->type) && shape_fits(found.shape, *data_set, extents)) {
                sound.insert(data_set);
            } else {
                problems.error(at, expected, fmt::format("{} of shape ({})", found.type, fmt::join(found.shape, ", ")));
            }
        } catch (const h5::Failure& failure) {
            problems.error(at, expected, failure.what());
        }
    }
    return sound;
}

}  // namespace kvscope::trace
