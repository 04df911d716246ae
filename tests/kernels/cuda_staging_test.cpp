#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/staging.cu"

/// An operation that waits on a stream. Returns false while it must wait longer.
struct FakeStream {
    std::deque<std::function<bool()>> waiting;
};

struct FakeEvent {
    int64_t recorded = 0, reached = 0;
};

namespace {

using kvscope::kernels::cuda::Staging;
using kvscope::kernels::cuda::Workspace;

/// A card whose streams advance as late, and in any order, as CUDA allows.
struct Card {
    std::vector<std::unique_ptr<FakeStream>> streams;
    std::vector<std::unique_ptr<FakeEvent>> events;
    std::vector<std::unique_ptr<std::vector<char>>> memory;
    std::mt19937 random{1};
    bool is_full = false, has_pinned = true;
    size_t device_bytes = 0;
    int waits = 0;
    cudaError_t last = cudaSuccess;

    cudaStream_t new_stream() { return streams.emplace_back(std::make_unique<FakeStream>()).get(); }

    void* allocate(size_t bytes) { return memory.emplace_back(std::make_unique<std::vector<char>>(bytes))->data(); }

    cudaError_t failed() { return last = cudaErrorMemoryAllocation; }

    /// Executes one operation of some stream. Returns whether there was one.
    bool go_on() {
        const size_t first = random() % streams.size();
        for (size_t i = 0; i < streams.size(); ++i) {
            auto& waiting = streams[(first + i) % streams.size()]->waiting;
            if (waiting.empty() || !waiting.front()()) continue;
            waiting.pop_front();
            return true;
        }
        return false;
    }

    void finish() {
        while (go_on()) {
        }
    }
};

Card* card = nullptr;

/// Never freed, because rings are known by their streams' addresses.
Card& new_card() {
    static std::deque<Card> all;
    card = &all.emplace_back();
    return *card;
}

struct Call {
    std::vector<char> told;
    std::vector<char> workspace;
};

}  // namespace

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(card->last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "out of memory"; }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "none" : "memory"; }
cudaError_t cudaMalloc(void** memory, size_t bytes) {
    if (card->is_full) return card->failed();
    card->device_bytes += bytes;
    *memory = card->allocate(bytes);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
    if (!card->has_pinned) return card->failed();
    *memory = card->allocate(bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    stream->waiting.emplace_back([=] { return std::memcpy(to, from, bytes), true; });
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    *stream = card->new_stream();
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event) {
    stream->waiting.emplace_back([event, until = event->recorded] { return event->reached >= until; });
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = card->events.emplace_back(std::make_unique<FakeEvent>()).get();
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    stream->waiting.emplace_back([event, to = ++event->recorded] { return event->reached = to, true; });
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (event->reached < event->recorded) ++card->waits;
    while (event->reached < event->recorded) REQUIRE(card->go_on());
    return cudaSuccess;
}

namespace {

/// Sends data to the kernels of many calls, which read it late, and compares it. Returns the number of calls with a
/// place.
int tell(Card& on, cudaStream_t stream, int n_calls, size_t most_bytes) {
    std::deque<Call> calls;
    int n_placed = 0, n_read = 0;
    for (int i = 0; i < n_calls; ++i) {
        Call& call = calls.emplace_back();
        call.told.resize(1 + on.random() % most_bytes);
        for (char& c : call.told) c = static_cast<char>(on.random());
        call.workspace.resize(call.told.size());
        Staging staging(call.told.size(), stream);
        n_placed += staging.place() ? 1 : 0;
        char* there = staging.place() ? staging.place() : call.workspace.data();
        std::vector<char> passing = call.told;  // the caller may reuse this immediately
        char error[256] = "";
        REQUIRE(staging.send("a kernel", there, passing.data(), passing.size(), error, sizeof error));
        passing.assign(passing.size(), 'x');
        stream->waiting.emplace_back([&call, &n_read, there] {
            n_read += std::memcmp(there, call.told.data(), call.told.size()) == 0 ? 1 : 0;
            return true;
        });
        for (auto steps = on.random() % 8; steps > 0; --steps) on.go_on();
    }
    on.finish();
    CHECK(n_read == n_calls);
    return n_placed;
}

}  // namespace

TEST_CASE("data from the host arrive before a card reads them and stay until then", "[cuda]") {
    Card& own = new_card();
    cudaStream_t stream = own.new_stream();
    CHECK(tell(own, stream, 300, 3 << 20) == 300);
    CHECK(own.waits > 0);  // the ring was turned while the card was behind
    const int waits = own.waits;
    // Data too large for a place go to the call's workspace in the stream's order, at any size.
    CHECK(tell(own, stream, 6, 40 << 20) < 6);
    CHECK(own.waits >= waits);
    // Another stream has its own ring.
    const size_t bytes = own.device_bytes;
    CHECK(tell(own, own.new_stream(), 3, 1000) == 3);
    CHECK(own.device_bytes == 2 * bytes);
}

TEST_CASE("data are sent although device memory or pinned memory is full", "[cuda]") {
    Card& own = new_card();
    own.is_full = true;
    CHECK(tell(own, own.new_stream(), 20, 1 << 20) == 0);
    CHECK(own.last == cudaSuccess);

    own.is_full = false, own.has_pinned = false;
    cudaStream_t stream = own.new_stream();
    char to[8], from[8] = "told", error[256] = "";
    for (int i = 0; i < 3; ++i) {
        Staging staging(sizeof from, stream);
        CHECK(staging.place() == nullptr);
        CHECK(own.last == cudaSuccess);  // otherwise the next CUDA call would report this error
        CHECK_FALSE(staging.send("a kernel", to, from, sizeof from, error, sizeof error));
        CHECK(std::string(error) == "a kernel: out of memory (memory)");
        CHECK(own.device_bytes == 32 << 20);
    }
    own.has_pinned = true;
    CHECK(tell(own, stream, 20, 1 << 20) == 20);
    CHECK(own.device_bytes == 32 << 20);
}
