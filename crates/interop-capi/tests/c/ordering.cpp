// hipcl/manager_opencl.hpp: commands on common bytes run in the order of the calls, and after those of the program.
//
// Each test closes a gate before its first command, enqueues a second one that must come after it, and lets time pass.
// A second command that does not wait has run by then, and the content shows it.
#include "check.hpp"

namespace {

constexpr std::size_t HALF = LEN / 2;
const std::array<std::size_t, 3> HALVES = {HALF, 1, 1};

// What all tests use.
struct Fixture {
    OpenCLComputeEngine &engine = OpenCLComputeEngine::GetInstance();
    const Other other{OpenCLCore::GetInstance().GetPlatform()};
    const cl_context context = OpenCLCore::GetInstance().GetContext();
    const std::shared_ptr<KernelProgram> program = engine.LoadProgram(SOURCE);
    const cl_kernel add = engine.GetKernel(program, "add"), twice = engine.GetKernel(program, "twice");
    const Delay delay{other, program->GetProgram()};

    Fixture() { engine.SetKernelArg(add, 1, 1.0f); }

    // The queue of the next launch.
    cl_command_queue next() const {
        (void)CommandQueuePool::GetNextQueue();
        const std::size_t index = CommandQueuePool::GetCurrentQueueIndex() + 1;
        return CommandQueuePool::GetQueue(index % CommandQueuePool::GetPoolSize());
    }
    // A buffer of another owner, with the ramp.
    cl_mem theirs() const {
        const cl_mem made = other.buffer(context, CL_MEM_READ_WRITE, BYTES);
        const ComplexVector data = ramp();
        CLBufferBridge::CopyToExternal(made, context, nullptr, BYTES, data.data());
        return made;
    }
    void release(std::initializer_list<cl_mem> buffers) const {
        for (const cl_mem buffer : buffers) CHECK(other.release_mem(buffer) == CL_SUCCESS);
    }

    // Doubles, then adds 1, in two launches on two queues, of which the first is held back.
    void double_and_add(cl_mem first, std::size_t first_len, cl_mem second, std::size_t second_len) {
        const Gate gate(other);
        gate.close(next());
        const cl_event doubled = engine.ExecuteKernelAsync(twice, {first}, {first_len, 1, 1}, ANY);
        const cl_event added = engine.ExecuteKernelAsync(add, {second}, {second_len, 1, 1}, ANY);
        delay.pass();
        CHECK(other.state(doubled) > 1); // the gate held
        CHECK(other.state(added) > 1);
        gate.open();
        engine.WaitForEvents({doubled, added});
        engine.ReleaseEvent(doubled);
        engine.ReleaseEvent(added);
    }
};

ComplexFloat added(ComplexFloat value) { return value + 1.0f; }
ComplexFloat doubled(ComplexFloat value) { return 2.0f * value; }

using Change = ComplexFloat (*)(ComplexFloat);
// Whether each half of the ramp has become this.
bool is(const ComplexVector &found, Change first_half, Change second_half) {
    const ComplexVector data = ramp();
    for (std::size_t i = 0; i < LEN; i++) {
        if (found[i] != (i < HALF ? first_half : second_half)(data[i])) return false;
    }
    return true;
}
ComplexFloat doubled_and_added(ComplexFloat value) { return added(doubled(value)); }
ComplexFloat unchanged(ComplexFloat value) { return value; }

void a_part_and_its_whole_are_in_order(Fixture &test) {
    const cl_mem whole = test.theirs(), part = test.other.part(whole, BYTES / 2, BYTES / 2);
    const auto wrapped_whole = test.engine.WrapExternalMemoryBuffer(whole, LEN);
    const auto wrapped_part = test.engine.WrapExternalMemoryBuffer(part, HALF);
    test.double_and_add(whole, LEN, part, HALF);
    CHECK(is(wrapped_whole->Read(), doubled, doubled_and_added));
    wrapped_whole->Write(ramp());
    test.double_and_add(part, HALF, whole, LEN);
    CHECK(is(wrapped_whole->Read(), added, doubled_and_added));
    CHECK(wrapped_part->Read().back() == doubled_and_added(ramp().back()));
    test.release({part, whole});
}

// The second wrapper lets kernels write.
void memory_that_is_wrapped_twice_is_in_order(Fixture &test) {
    const cl_mem whole = test.theirs();
    const auto reader = test.engine.WrapExternalMemoryBuffer(whole, LEN, MemoryType::GPU_READ_ONLY);
    const auto writer = test.engine.WrapExternalMemoryBuffer(whole, LEN, MemoryType::GPU_READ_WRITE);
    test.double_and_add(whole, LEN, whole, LEN);
    CHECK(is(reader->Read(), doubled_and_added, doubled_and_added));
    test.release({whole});
}

void parts_without_common_bytes_do_not_wait(Fixture &test) {
    const cl_mem whole = test.theirs();
    const cl_mem front = test.other.part(whole, 0, BYTES / 2), back = test.other.part(whole, BYTES / 2, BYTES / 2);
    const auto wrapped_front = test.engine.WrapExternalMemoryBuffer(front, HALF);
    const auto wrapped_back = test.engine.WrapExternalMemoryBuffer(back, HALF);
    const Gate gate(test.other);
    gate.close(test.next());
    const cl_event held = test.engine.ExecuteKernelAsync(test.twice, {front}, HALVES, ANY);
    const cl_event free = test.engine.ExecuteKernelAsync(test.add, {back}, HALVES, ANY);
    CHECK(ends(test.other, free) && test.other.state(held) > 1);
    gate.open();
    ComplexVector found(LEN);
    CLBufferBridge::CopyFromExternal(whole, test.context, nullptr, BYTES, found.data());
    CHECK(is(found, doubled, added));
    test.engine.ReleaseEvent(held);
    test.engine.ReleaseEvent(free);
    test.release({front, back, whole});
}

// A part that kernels only read, and its whole, which they write.
void readers_run_side_by_side_and_in_order_with_writers(Fixture &test) {
    auto &engine = test.engine;
    const cl_mem whole = test.theirs(), part = test.other.part(whole, BYTES / 2, BYTES / 2);
    const cl_command_queue queue = CommandQueuePool::GetQueue(0);
    const auto wrapped = std::make_unique<ExternalBuffer>(test.context, queue, whole, LEN);
    const auto read_only = engine.WrapExternalMemoryBuffer(part, HALF, MemoryType::GPU_READ_ONLY);
    const auto one = engine.CreateHybridBuffer(HALF), two = engine.CreateHybridBuffer(HALF);
    const cl_mem first = one->GetCLMem(), second = two->GetCLMem();
    const cl_kernel sum = engine.GetKernel(test.program, "sum");
    const auto empty = [&] {
        one->Write(ComplexVector(HALF));
        two->Write(ComplexVector(HALF));
    };
    {
        empty();
        const Gate gate(test.other);
        gate.close(test.next());
        const std::vector<cl_event> events = {engine.ExecuteKernelAsync(sum, {part, first}, HALVES, ANY),
                                              engine.ExecuteKernelAsync(sum, {part, second}, HALVES, ANY),
                                              engine.ExecuteKernelAsync(test.add, {whole}, ALL, ANY)};
        CHECK(ends(test.other, events[1]));
        test.delay.pass();
        CHECK(test.other.state(events[0]) > 1 && test.other.state(events[2]) > 1);
        gate.open();
        CHECK(one->Read().back() == ramp().back() && two->Read().back() == ramp().back());
        CHECK(is(wrapped->Read(), added, added));
        for (const cl_event event : events) engine.ReleaseEvent(event);
    }
    wrapped->Write(ramp());
    empty();
    const Gate gate(test.other);
    while (test.next() != queue) {
    }
    gate.close(queue);
    ComplexVector found;
    // The transfer runs on the queue of the launch, and other readers wait for the launch all the same.
    const std::vector<cl_event> events = {engine.ExecuteKernelAsync(test.twice, {whole}, ALL, ANY),
                                          wrapped->ReadAsync(found),
                                          engine.ExecuteKernelAsync(sum, {part, first}, HALVES, ANY),
                                          engine.ExecuteKernelAsync(sum, {part, second}, HALVES, ANY)};
    test.delay.pass();
    for (const cl_event event : events) CHECK(test.other.state(event) > 1);
    gate.open();
    engine.WaitForEvents(events);
    CHECK(is(found, doubled, doubled));
    CHECK(one->Read().back() == doubled(ramp().back()) && two->Read().back() == doubled(ramp().back()));
    for (const cl_event event : events) engine.ReleaseEvent(event);
    test.release({part, whole});
}

void views_of_one_pointer_are_in_order(Fixture &test) {
    const auto svm = test.engine.CreateBufferWithStrategy(LEN, MemoryStrategy::SVM_COARSE_GRAIN);
    svm->Write(ramp());
    void *const pointer = svm->GetSVMPointer();
    const cl_mem_flags view = CL_MEM_READ_WRITE | 1 << 3; // CL_MEM_USE_HOST_PTR
    const cl_mem first = test.other.buffer(test.context, view, BYTES, pointer);
    const cl_mem second = test.other.buffer(test.context, view, BYTES, pointer);
    const auto wrapped_first = test.engine.WrapExternalMemoryBuffer(first, LEN);
    const auto wrapped_second = test.engine.WrapExternalMemoryBuffer(second, LEN);
    test.double_and_add(first, LEN, second, LEN);
    CHECK(is(svm->Read(), doubled_and_added, doubled_and_added));
    wrapped_first->Write(ramp());
    test.double_and_add(svm->GetCLMem(), LEN, second, LEN);
    CHECK(is(wrapped_first->Read(), doubled_and_added, doubled_and_added));

    // The host has the bytes, whatever object shows them.
    const ScopedMap map(svm.get());
    THROWS(OpenCLError, "Unmap() first", wrapped_second->Write(ramp()));
    THROWS(OpenCLError, "Unmap() first", wrapped_second->GetSharedBuffer());
    THROWS(OpenCLError, "Unmap() first", test.engine.ExecuteKernel(test.twice, {first}, ALL, ANY));
    test.release({first, second});
}

void arguments_that_were_set_before_count(Fixture &test) {
    const auto from = test.engine.CreateHybridBuffer(LEN), to = test.engine.CreateHybridBuffer(LEN);
    from->Write(ramp());
    to->Write(ComplexVector(LEN));
    const cl_kernel sum = test.engine.GetKernel(test.program, "sum");
    const cl_mem object = from->GetCLMem();
    to->SetAsKernelArg(sum, 1);
    const Gate gate(test.other);
    gate.close(test.next());
    const cl_event summed = test.engine.ExecuteKernelAsync(sum, {object}, ALL, ANY);
    const cl_event doubled_too = test.engine.ExecuteKernelAsync(test.twice, {to->GetCLMem()}, ALL, ANY);
    const cl_event added_too = test.engine.ExecuteKernelAsync(test.add, {object}, ALL, ANY);
    test.delay.pass();
    gate.open();
    CHECK(is(to->Read(), doubled, doubled) && is(from->Read(), added, added));
    for (const cl_event event : {summed, doubled_too, added_too}) test.engine.ReleaseEvent(event);
}

// `is_forgotten`: the wrapper lives no longer than the call that tells of the queue.
void launches_run_after_what_is_on_the_programs_queue(Fixture &test, bool is_forgotten) {
    const auto buffer = test.engine.CreateHybridBuffer(LEN);
    buffer->Write(ramp());
    const cl_mem object = buffer->GetCLMem();
    const cl_command_queue queue = test.other.queue();
    const cl_kernel twice = test.other.kernel(test.program->GetProgram(), "twice", object);
    auto wrapper = std::make_unique<ExternalQueueWrapper>(queue);
    const Gate gate(test.other);
    gate.close(queue);
    CHECK(test.other.launch(queue, twice, 1, nullptr, &ALL[0], nullptr, 0, nullptr, nullptr) == CL_SUCCESS);
    if (is_forgotten) wrapper.reset();
    const cl_event added_then = test.engine.ExecuteKernelAsync(test.add, {object}, ALL, ANY);
    test.delay.pass();
    CHECK(test.other.state(added_then) > 1);
    gate.open();
    CHECK(is(buffer->Read(), doubled_and_added, doubled_and_added));
    test.engine.ReleaseEvent(added_then);
    CHECK(test.other.release_kernel(twice) == CL_SUCCESS && test.other.release_queue(queue) == CL_SUCCESS);
}

// The program's launch is on a queue of the pool, and older than the wrapper, or the object has none.
void launches_on_new_memory_run_after_what_is_on_the_pools_queues(Fixture &test, bool is_wrapped) {
    const cl_mem object = test.theirs();
    const cl_kernel twice = test.other.kernel(test.program->GetProgram(), "twice", object);
    const Gate gate(test.other);
    const cl_command_queue queue = CommandQueuePool::GetNextQueue();
    gate.close(queue);
    CHECK(test.other.launch(queue, twice, 1, nullptr, &ALL[0], nullptr, 0, nullptr, nullptr) == CL_SUCCESS);
    std::unique_ptr<IMemoryBuffer> wrapped;
    if (is_wrapped) wrapped = test.engine.WrapExternalMemoryBuffer(object, LEN);
    const cl_event added_then = test.engine.ExecuteKernelAsync(test.add, {object}, ALL, ANY);
    test.delay.pass();
    CHECK(test.other.state(added_then) > 1);
    gate.open();
    ComplexVector found(LEN);
    CLBufferBridge::CopyFromExternal(object, test.context, nullptr, BYTES, found.data());
    CHECK(is(found, doubled_and_added, doubled_and_added));
    wrapped.reset();
    test.engine.ReleaseEvent(added_then);
    CHECK(test.other.release_kernel(twice) == CL_SUCCESS);
    test.release({object});
}

void hip_takes_turns_on_common_bytes(Fixture &test) {
    const cl_mem whole = test.theirs(), part = test.other.part(whole, BYTES / 2, BYTES / 2);
    const auto wrapped_whole = test.engine.WrapExternalMemoryBuffer(whole, LEN);
    const auto wrapped_part = test.engine.WrapExternalMemoryBuffer(part, HALF);
    CHECK(is(wrapped_whole->Read(), unchanged, unchanged));
    const hipcl::Stream stream = test.engine.GetBridge().stream();
    hipcl::Kernel slow_twice = test.program->GetSharedProgram().kernel("slow_twice");
    // HIP on the part and on the whole, OpenCL on the part, HIP on the whole, OpenCL on the part.
    slow_twice.launch(stream, hipcl::Range(HALF), hipcl::Write{wrapped_part->GetSharedBuffer()});
    ComplexVector found(LEN);
    wrapped_whole->GetSharedBuffer().download(found.data(), LEN);
    CHECK(is(found, unchanged, doubled));
    CHECK(wrapped_part->Read().back() == doubled(ramp().back()));
    slow_twice.launch(stream, hipcl::Range(LEN), hipcl::Write{wrapped_whole->GetSharedBuffer()});
    test.engine.ExecuteKernel(test.add, {part}, HALVES, ANY);
    CHECK(wrapped_part->Read().back() == added(doubled(doubled(ramp().back()))));
    test.release({part, whole});
}

// A value that one thread sets is not one that another thread launches with.
void threads_have_kernels_of_their_own(Fixture &test) {
    const auto data = test.engine.CreateBufferWithData(ramp(), MemoryType::GPU_READ_WRITE);
    test.engine.SetKernelArg(test.add, 1, 1.0f);
    std::thread([&] {
        const cl_kernel add = test.engine.GetKernel(test.program, "add");
        CHECK(add != test.add && add == test.engine.GetKernel(test.program, "add"));
        test.engine.SetKernelArg(add, 1, 5.0f);
    }).join();
    test.engine.ExecuteKernel(test.add, {data->Get()}, ALL, ANY);
    CHECK(is(data->ReadFromGPU(), added, added));
    CHECK(test.engine.GetKernel(test.program, "add") == test.add);
}

void a_moved_buffer_is_named() {
    auto buffer = OpenCLComputeEngine::GetInstance().CreateBuffer(LEN);
    const GPUMemoryBuffer moved = std::move(*buffer);
    THROWS(OpenCLError, "was moved", (void)buffer->ReadFromGPU());
    CHECK(moved.GetNumElements() == LEN);
}

} // namespace

int main() {
    OpenCLComputeEngine::Initialize();
    {
        Fixture test;
        a_part_and_its_whole_are_in_order(test);
        memory_that_is_wrapped_twice_is_in_order(test);
        parts_without_common_bytes_do_not_wait(test);
        readers_run_side_by_side_and_in_order_with_writers(test);
        views_of_one_pointer_are_in_order(test);
        arguments_that_were_set_before_count(test);
        launches_run_after_what_is_on_the_programs_queue(test, false);
        launches_run_after_what_is_on_the_programs_queue(test, true);
        launches_on_new_memory_run_after_what_is_on_the_pools_queues(test, true);
        launches_on_new_memory_run_after_what_is_on_the_pools_queues(test, false);
        hip_takes_turns_on_common_bytes(test);
        threads_have_kernels_of_their_own(test);
        a_moved_buffer_is_named();
        CHECK(test.engine.TakeDeferredErrors().empty());
    }
    OpenCLComputeEngine::Cleanup();
    return 0;
}
