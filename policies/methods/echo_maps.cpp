#include "policies/methods/echo_maps.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::policies {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr int largest_dimension = 4096;  // layers, heads or head size; their products fit into an int
constexpr const char* format_prefix = "kvscope-echo-maps-";
constexpr const char* written_format = "kvscope-echo-maps-1";
// Limit in bytes, because the app reads the header whenever it needs the ratio.
constexpr uint64_t largest_header_bytes = uint64_t{1} << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw EchoMapsError("EchoKV's maps '" + path + "': " + why +
                        " Create them with `kvscope train-echo -m MODEL -o FILE`.");
}

std::string tensor_name(int layer, const char* kind) { return fmt::format("layers.{}.{}", layer, kind); }

struct Opened {
    std::ifstream file;
    nlohmann::json header;
    uint64_t begin = 0;
    uint64_t size = 0;
};

Opened open(const std::string& path) {
    Opened opened;
    std::error_code error;
    // Reading a pipe or device could block forever.
    if (std::filesystem::is_regular_file(path, error)) opened.file.open(path, std::ios::binary);
    if (!opened.file.is_open()) refuse(path, "the file does not exist or cannot be read.");
    opened.size = std::filesystem::file_size(path, error);
    uint64_t length = 0;
    if (!opened.file.read(reinterpret_cast<char*>(&length), sizeof(length)) || length > largest_header_bytes ||
        length + sizeof(length) > opened.size)
        refuse(path, "expected a safetensors file, found a file without a safetensors header.");
    std::string text(length, '\0');
    opened.file.read(text.data(), static_cast<std::streamsize>(length));
    opened.header = bounded_json::parse_or_discard(text);
    opened.begin = sizeof(length) + length;
    if (!opened.file || !opened.header.is_object())
        refuse(path, "expected a safetensors file, found a header that is not a JSON object.");
    return opened;
}

std::string metadata(const std::string& path, const Opened& opened, const std::string& name) {
    const auto all = opened.header.find("__metadata__");
    if (all != opened.header.end() && all->is_object())
        if (const auto found = all->find(name); found != all->end() && found->is_string())
            return found->get<std::string>();
    refuse(path, "expected maps written by `kvscope train-echo`, found no \"" + name + "\" in its metadata.");
}

int number(const std::string& path, const Opened& opened, const std::string& name, int low, int high) {
    const std::string text = metadata(path, opened, name);
    try {
        size_t read = 0;
        const int value = std::stoi(text, &read);
        if (read == text.size() && value >= low && value <= high) return value;
    } catch (const std::logic_error&) {
    }
    refuse(path, fmt::format("expected \"{}\" from {} to {}, found \"{:.40}\".", name, low, high, text));
}

EchoLayout layout_of(const std::string& path, const Opened& opened) {
    if (const std::string format = metadata(path, opened, "format"); format != written_format)
        refuse(path, fmt::format("expected the format {}, found \"{}\".", written_format, format));
    EchoLayout layout;
    layout.n_layers = number(path, opened, "n_layers", 1, largest_dimension);
    layout.n_kv_heads = number(path, opened, "n_kv_heads", 1, largest_dimension);
    layout.head_dim = number(path, opened, "head_dim", 1, largest_dimension);
    layout.group = number(path, opened, "group", 1, layout.n_layers);
    layout.local = number(path, opened, "local", 0, layout.width());
    return layout;
}

uint64_t map_bytes(const EchoLayout& layout) {
    return static_cast<uint64_t>(layout.width() + layout.local) * static_cast<uint64_t>(layout.width() - layout.local) *
           sizeof(float);
}

EchoMaps header_of(const std::string& path, const Opened& opened) {
    EchoMaps maps;
    maps.layout = layout_of(path, opened);
    maps.model_fingerprint = metadata(path, opened, "model_fingerprint");
    for (const auto& [name, value] : opened.header["__metadata__"].items())
        if (value.is_string()) maps.facts[name] = value.get<std::string>();
    return maps;
}

/// Compares sizes before allocating memory, because a damaged header may name the same bytes for many maps.
void require_room(const std::string& path, const Opened& opened, const EchoLayout& layout) {
    uint64_t n_maps = 0;
    for (int layer = 0; layer < layout.n_layers; ++layer) n_maps += layout.is_rebuilt(layer) ? 2 : 0;
    if (const uint64_t bytes = n_maps * map_bytes(layout); bytes > opened.size - opened.begin)
        refuse(path, fmt::format("expected {} maps of {} bytes each, found {} bytes: is the file cut off?", n_maps,
                                 map_bytes(layout), opened.size - opened.begin));
}

Matrix read_matrix(const std::string& path, Opened& opened, const EchoLayout& layout, const std::string& name) {
    Matrix matrix{layout.width() + layout.local, layout.width() - layout.local, {}};
    const uint64_t bytes = map_bytes(layout);
    const auto found = opened.header.find(name);
    if (found == opened.header.end()) refuse(path, fmt::format("the map \"{}\" is missing.", name));
    const nlohmann::json expected = {matrix.n_rows, matrix.n_columns};
    const nlohmann::json shape = found->is_object() ? found->value("shape", nlohmann::json()) : nlohmann::json();
    if (shape != expected || found->value("dtype", nlohmann::json()) != "F32")
        refuse(path, fmt::format("expected \"{}\" to be F32 {}, found {}.", name, expected.dump(),
                                 found->dump().substr(0, 200)));
    const auto offsets = found->value("data_offsets", nlohmann::json());
    const bool are_numbers =
        offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    const uint64_t begin = are_numbers ? offsets[0].get<uint64_t>() : 0,
                   end = are_numbers ? offsets[1].get<uint64_t>() : 0;
    if (!are_numbers || begin > end || end - begin != bytes || end > opened.size - opened.begin)
        refuse(path, fmt::format("expected {} bytes of \"{}\", found {} in {} bytes: is the file cut off?", bytes, name,
                                 offsets.dump().substr(0, 200), opened.size - opened.begin));
    matrix.numbers.resize(bytes / sizeof(float));
    opened.file.seekg(static_cast<std::streamoff>(opened.begin + begin));
    opened.file.read(reinterpret_cast<char*>(matrix.numbers.data()), static_cast<std::streamsize>(bytes));
    if (!opened.file) refuse(path, fmt::format("\"{}\" cannot be read.", name));
    for (const float value : matrix.numbers)
        if (!std::isfinite(value))
            refuse(path, fmt::format("expected finite numbers in \"{}\", found {}.", name, value));
    return matrix;
}

}  // namespace

double EchoLayout::ratio() const {
    const double d = width();
    return (d + local * (group - 1.0)) / (d * group);
}

double EchoLayout::model_ratio() const {
    double stored = 0;
    for (int layer = 0; layer < n_layers; ++layer) stored += is_rebuilt(layer) ? local : width();
    return stored / (static_cast<double>(width()) * n_layers);
}

namespace {

/// Tolerated difference between two ratios. The paper's layout for ratio 0.7 has ratio 0.6875.
constexpr double ratio_tolerance = 0.015;

}  // namespace

EchoLayout echo_layout_for_ratio(double ratio, const ModelShape& shape) {
    if (!(ratio > 0) || ratio > 1)
        throw EchoMapsError(fmt::format("ratio {}: expected a number above 0 and at most 1", ratio));
    EchoLayout layout{shape.n_layers, shape.n_kv_heads, shape.head_dim, 1, 0};
    const double group = std::ceil(1.0 / ratio - 1e-9);
    if (group > shape.n_layers)
        throw EchoMapsError(
            fmt::format("ratio {} needs groups of {:.0f} layers, but the model has {} layers. Give a larger ratio.",
                        ratio, group, shape.n_layers));
    layout.group = static_cast<int>(group);
    while (layout.model_ratio() > ratio + ratio_tolerance) ++layout.group;
    if (layout.group == 1) return layout;
    const double n_first = std::ceil(static_cast<double>(shape.n_layers) / layout.group);
    const double n_others = shape.n_layers - n_first;
    const double target = std::max(0.0, layout.width() * (ratio * shape.n_layers - n_first) / n_others);
    std::vector<int> steps = {shape.head_dim};
    for (const int step : {16, 8, 4, 2, 1})
        if (step < shape.head_dim) steps.push_back(step);
    for (const int step : steps) {
        layout.local = std::min(step * static_cast<int>(std::lround(target / step)), layout.width());
        if (std::abs(layout.model_ratio() - ratio) <= ratio_tolerance) break;
    }
    return layout;
}

std::string to_safetensors(const EchoMaps& maps) {
    nlohmann::ordered_json header;
    auto& notes = header["__metadata__"];
    for (const auto& [name, value] : maps.facts) notes[name] = value;
    notes["format"] = written_format;
    notes["model_fingerprint"] = maps.model_fingerprint;
    const auto note = [&](const char* name, int value) { notes[name] = std::to_string(value); };
    note("n_layers", maps.layout.n_layers);
    note("n_kv_heads", maps.layout.n_kv_heads);
    note("head_dim", maps.layout.head_dim);
    note("group", maps.layout.group);
    note("local", maps.layout.local);
    std::string data;
    const auto add = [&](int layer, const char* kind, const Matrix& matrix) {
        const size_t begin = data.size(), bytes = matrix.numbers.size() * sizeof(float);
        data.append(reinterpret_cast<const char*>(matrix.numbers.data()), bytes);
        header[tensor_name(layer, kind)] = {
            {"dtype", "F32"}, {"shape", {matrix.n_rows, matrix.n_columns}}, {"data_offsets", {begin, begin + bytes}}};
    };
    for (const auto& [layer, of_layer] : maps.layers) {
        add(layer, "keys", of_layer.keys);
        add(layer, "values", of_layer.values);
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;
}

bool holds_echo_maps(const std::string& path) {
    try {
        return metadata(path, open(path), "format").starts_with(format_prefix);
    } catch (const EchoMapsError&) {
        return false;
    }
}

EchoMaps read_echo_maps(const std::string& path) {
    Opened opened = open(path);
    EchoMaps maps = header_of(path, opened);
    require_room(path, opened, maps.layout);
    for (int layer = 0; layer < maps.layout.n_layers; ++layer) {
        if (!maps.layout.is_rebuilt(layer)) continue;
        maps.layers[layer] = {read_matrix(path, opened, maps.layout, tensor_name(layer, "keys")),
                              read_matrix(path, opened, maps.layout, tensor_name(layer, "values"))};
    }
    return maps;
}

EchoMaps read_echo_header(const std::string& path) { return header_of(path, open(path)); }

}  // namespace kvscope::policies
