#include "kernels/cuda_library.h"

#include <catch2/catch.hpp>
#include <string>

#include "kernels/cuda/abi.h"
#include "tests/skip.h"

using namespace kvscope::kernels;

TEST_CASE("without CUDA the reason is available and part of the error") {
    if (cuda::available()) {
        CHECK_THROWS_AS(cuda::find_library_function("kvscope_cuda_no_such_function"), cuda::Unavailable);
        return;
    }
    const std::string& reason = cuda::unavailable_reason();
    const bool named = reason.find("libkvscope_cuda.so") != std::string::npos ||
                       reason.find("NVIDIA driver") != std::string::npos || reason.find("GPU") != std::string::npos;
    CHECK(named);

    CHECK_THROWS_WITH(cuda::find_library_function(cuda::abi::window_attention_symbol), Catch::Contains(reason));
}

TEST_CASE("a GPU reports its name and memory", "[card]") {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    const auto describe = reinterpret_cast<DescribeDevice*>(cuda::find_library_function(describe_device_symbol));
    DeviceProperties properties{};
    char error[200];
    REQUIRE(describe(0, &properties, error, sizeof error));
    CHECK(properties.name[0] != 0);
    CHECK(properties.total_bytes > 0);
    CHECK(properties.free_bytes <= properties.total_bytes);
    CHECK(properties.major >= 8);
    CHECK_FALSE(describe(999, &properties, error, sizeof error));
    CHECK(std::string(error) != "");
}
