#include "engine/model/rotation_table.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/rope.h"

using namespace kvscope;

// Positions in any order, known and new ones, negative differences, and positions beyond the table's limit.
TEST_CASE("rotations from the table equal those that are computed, to the last bit") {
    std::vector<double> frequencies;
    for (int c = 0; c < 16; ++c) frequencies.push_back(double{std::pow(10000.0f, -static_cast<float>(c) / 16)});
    const double factor = 1.1386943611198906;
    const engine::RotationTable table(frequencies, factor, 5000);
    std::vector<int64_t> row(700);
    std::iota(row.begin(), row.end(), 40);
    const auto early = table.rotation(std::vector<int64_t>{3, 4, 5});
    for (const auto& positions : std::vector<std::vector<int64_t>>{{0},
                                                                   {17},
                                                                   {0, 1, 2, 3},
                                                                   row,
                                                                   {-7},
                                                                   {-3, -2, -1, 0, 1},
                                                                   {4, 2, 900, -4999, 0},
                                                                   {},
                                                                   {4999},
                                                                   {5000, -8000, 3},
                                                                   {1000000007}}) {
        const auto found = table.rotation(positions);
        REQUIRE(found.cosines.size(0) == static_cast<int64_t>(positions.size()));
        std::vector<float> cosines(16 * positions.size()), sines(cosines.size());
        kernels::rope_table(positions, frequencies, factor, cosines.data(), sines.data());
        CHECK(std::equal(cosines.begin(), cosines.end(), found.cosines.const_data_ptr<float>()));
        CHECK(std::equal(sines.begin(), sines.end(), found.sines.const_data_ptr<float>()));
    }
    // Returned tensors stay valid when the table grows.
    CHECK(early.sines.const_data_ptr<float>()[16] == static_cast<float>(std::sin(4.0) * factor));
}
