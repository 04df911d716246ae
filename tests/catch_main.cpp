// The tests' main program: Catch2's, and `--shard 1/2` for the first half of the tests that are asked for, so that
// ctest runs long programs as several. Tests with the tag [alone], which look at the whole process, are in no shard.
#define CATCH_CONFIG_RUNNER
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// In a filter a comma parts names, and brackets are tags.
std::string escaped(const std::string& name) {
    std::string filter;
    for (const char c : name) {
        if (std::string_view(",[]\"\\").find(c) != std::string_view::npos) filter += '\\';
        filter += c;
    }
    return '"' + filter + '"';
}

/// Every n-th test, from the i-th on. @param shard "i/n", 1 <= i <= n @returns false where it is something else
bool choose(Catch::Session& session, const std::string& shard) {
    unsigned i = 0, n = 0;
    if (std::sscanf(shard.c_str(), "%u/%u", &i, &n) != 2 || i < 1 || i > n) return false;
    auto data = session.configData();
    unsigned at = 0;
    std::string all;
    const auto& config = session.config();
    for (const Catch::TestCase& test :
         Catch::filterTests(Catch::getAllTestCasesSorted(config), config.testSpec(), config)) {
        const auto& tags = test.tags;
        if (test.isHidden() || std::find(tags.begin(), tags.end(), "alone") != tags.end()) continue;
        if (at++ % n != i - 1) continue;
        all += (all.empty() ? "" : ",") + escaped(test.name);
    }
    data.testsOrTags = {all};
    session.useConfigData(data);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Catch::Session session;
    std::string shard;
    session.cli(session.cli() | Catch::clara::Opt(shard, "i/n")["--shard"]("runs the i-th of n parts of the tests"));
    if (const int error = session.applyCommandLine(argc, argv); error != 0) return error;
    if (!shard.empty() && !choose(session, shard)) {
        std::fprintf(stderr, "--shard takes 1/2 for the first of two parts, not '%s'\n", shard.c_str());
        return 2;
    }
    return session.run();
}
