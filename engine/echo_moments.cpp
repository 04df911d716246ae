#include "engine/echo_moments.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/error.h"
#include "kernels/linear.h"

namespace kvscope::engine {
namespace {

using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr char kMagic[] = "kvscope echo moments 2\n";

void write_text(std::ostream& out, const std::string& text) {
    const uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof(length));
    out.write(text.data(), static_cast<std::streamsize>(length));
}

/// Whether the text comes next.
bool read_text(std::istream& in, const std::string& expected) {
    uint64_t length = 0;
    if (!in.read(reinterpret_cast<char*>(&length), sizeof(length)) || length != expected.size()) return false;
    std::string found(length, '\0');
    return in.read(found.data(), static_cast<std::streamsize>(length)) && found == expected;
}

template <class All, class Visit>
void for_each_sum(All& all, Visit visit) {
    for (auto& [layer, of_layer] : all) {
        visit(of_layer.keys.sums());
        visit(of_layer.values.sums());
    }
}

uint64_t hash_of(const EchoMoments& moments, int64_t n_sequences) {
    auto hash = static_cast<uint64_t>(n_sequences);
    for_each_sum(moments, [&](std::span<const double> sums) {
        hash = XXH3_64bits_withSeed(sums.data(), sums.size_bytes(), hash);
    });
    return hash;
}

}  // namespace

Moments::Moments(const policies::EchoLayout& layout)
    : inputs_(layout.width() + layout.local), sums_(Matrix::Zero(2 * layout.width(), 2 * layout.width())) {}

void Moments::add(const std::vector<float>& first, const std::vector<float>& own) {
    std::vector<float> both = first;
    both.insert(both.end(), own.begin(), own.end());
    const int64_t n = sums_.rows(), tokens = static_cast<int64_t>(both.size()) / n;
    std::vector<float> products(static_cast<size_t>(n * n));
    kernels::linear({.dtype = kernels::DType::f32,
                     .n_rows = n,
                     .in = tokens,
                     .out = n,
                     .x = both.data(),
                     .weight = both.data(),
                     .y = products.data()});
    sums_ += Eigen::Map<const RowsF>(products.data(), n, n).cast<double>();
}

policies::Matrix Moments::solved(double ridge) const {
    const Matrix squares = sums_.topLeftCorner(inputs_, inputs_);
    const double mean = squares.trace() / static_cast<double>(inputs_);
    // The sums are f32 products: where inputs follow from others, their rounding can outweigh a small ridge. It grows
    // until it does not; where nothing was summed up the map is 0.
    for (double share = std::max(ridge, 1e-7); share < 1e3; share *= 10) {
        Matrix raised = squares;
        raised.diagonal().array() += mean > 0 ? share * mean : 1.0;
        const Eigen::LLT<Matrix> factors(raised);
        if (factors.info() != Eigen::Success) continue;
        const Matrix map = factors.solve(sums_.topRightCorner(inputs_, outputs()));
        policies::Matrix matrix{static_cast<int>(inputs_), static_cast<int>(outputs()), {}};
        matrix.numbers.resize(static_cast<size_t>(map.size()));
        std::transform(map.data(), map.data() + map.size(), matrix.numbers.begin(),
                       [](double value) { return static_cast<float>(value); });
        if (map.allFinite() && !(error(matrix) > 1.0)) return matrix;
    }
    throw RunError("the text's keys and values give no map: they are not finite, or nothing can be told from them");
}

double Moments::error(const policies::Matrix& map) const {
    const Matrix w = Eigen::Map<const RowsF>(map.numbers.data(), map.n_rows, map.n_columns).cast<double>();
    const double whole = sums_.bottomRightCorner(outputs(), outputs()).trace();
    const Matrix squares = sums_.topLeftCorner(inputs_, inputs_), products = sums_.topRightCorner(inputs_, outputs());
    const double missed = whole - 2.0 * w.cwiseProduct(products).sum() + w.cwiseProduct(squares * w).sum();
    return whole > 0 ? std::sqrt(std::max(missed, 0.0) / whole) : 0.0;
}

MomentsFile::MomentsFile(std::filesystem::path path, std::string of) : path_(std::move(path)), of_(std::move(of)) {
    std::error_code error;
    std::ifstream in;
    if (!std::filesystem::exists(path_, error)) return;
    if (std::filesystem::is_regular_file(path_, error)) in.open(path_, std::ios::binary);
    if (!in.is_open() || !read_text(in, kMagic))
        throw UsageError(
            fmt::format("{}: what is read of the text would be kept here, and there is something else: move it away",
                        path_.string()));
}

int64_t MomentsFile::read(EchoMoments& moments) const {
    std::ifstream in(path_, std::ios::binary);
    int64_t n_sequences = 0;
    uint64_t hash = 0;
    if (!in.is_open() || !read_text(in, kMagic) || !read_text(in, of_)) return 0;
    in.read(reinterpret_cast<char*>(&n_sequences), sizeof(n_sequences));
    EchoMoments read = moments;
    for_each_sum(read, [&](std::span<double> sums) {
        in.read(reinterpret_cast<char*>(sums.data()), static_cast<std::streamsize>(sums.size_bytes()));
    });
    in.read(reinterpret_cast<char*>(&hash), sizeof(hash));
    if (!in || hash != hash_of(read, n_sequences) || n_sequences < 1) return 0;  // cut off or damaged
    moments = std::move(read);
    return n_sequences;
}

std::string MomentsFile::write(const EchoMoments& moments, int64_t n_sequences) const {
    const auto temporary = std::filesystem::path(path_.string() + ".new");
    errno = 0;
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    write_text(out, kMagic);
    write_text(out, of_);
    out.write(reinterpret_cast<const char*>(&n_sequences), sizeof(n_sequences));
    for_each_sum(moments, [&](std::span<const double> sums) {
        out.write(reinterpret_cast<const char*>(sums.data()), static_cast<std::streamsize>(sums.size_bytes()));
    });
    const uint64_t hash = hash_of(moments, n_sequences);
    out.write(reinterpret_cast<const char*>(&hash), sizeof(hash));
    out.close();
    std::error_code error;
    if (out) std::filesystem::rename(temporary, path_, error);
    if (out && !error) return {};
    const std::string why = error ? error.message() : errno ? std::strerror(errno) : "writing failed";
    std::filesystem::remove(temporary, error);
    return fmt::format("{}: {}", path_.string(), why);
}

}  // namespace kvscope::engine
