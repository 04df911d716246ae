// Renders a chat template in a separate process, which can have its own limits of time and memory.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "engine/template/interpreter.h"
#include "engine/template/limits_of_process.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
// AddressSanitizer reserves terabytes of address space, so only the sanitizer's own memory limit works.
extern "C" const char* __asan_default_options() {
    return "hard_rss_limit_mb=1024:max_allocation_size_mb=1024:detect_leaks=0:exitcode=3";
}
#endif
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "hard_rss_limit_mb=1024:max_allocation_size_mb=1024"; }
#endif

namespace {

void limit(__rlimit_resource resource, rlim_t most, rlim_t at_all) {
    const rlimit both{most, at_all};
    setrlimit(resource, &both);
}

void set_limits() {
    using namespace kvscope::chat_template;
    constexpr rlim_t megabyte = 1 << 20;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with the parent process
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, seconds_of_processor, seconds_of_processor + 1);  // SIGXCPU, then SIGKILL a second later
    limit(RLIMIT_STACK, megabytes_of_stack * megabyte, megabytes_of_stack * megabyte);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limit(RLIMIT_AS, megabytes_of_memory * megabyte, megabytes_of_memory * megabyte);
#endif
    // The interpreter would report a failed allocation as an error of the template.
    std::set_new_handler([] { _exit(kvscope::chat_template::exit_out_of_memory); });
}

std::string read_all(int descriptor) {
    std::string all;
    char block[1 << 16];
    for (ssize_t got = 0; (got = read(descriptor, block, sizeof block)) > 0;)
        all.append(block, static_cast<size_t>(got));
    return all;
}

bool write_all(int descriptor, const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t written = write(descriptor, bytes.data() + done, bytes.size() - done);
        if (written <= 0) return false;
        done += static_cast<size_t>(written);
    }
    return true;
}

}  // namespace

int main() {
    set_limits();
    if (isatty(STDIN_FILENO)) {
        std::fputs("kvscope-chat-template is only started by kvscope, to render a model's chat template.\n", stderr);
        return 2;
    }
    try {
        using namespace kvscope::chat_template;
        const Reply reply = render_template(parse_request(read_all(STDIN_FILENO)));
        _exit(write_all(STDOUT_FILENO, message_to_bytes(reply)) ? 0 : 1);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kvscope-chat-template: %s\n", error.what());
        return 1;
    }
}
