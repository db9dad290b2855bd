// hipcl/manager_opencl.hpp: other owners' memory, contexts and queues, the order of work, and errors.
#include "check.hpp"

static void nothing_works_before_it_is_initialised() {
    THROWS(OpenCLError, "call OpenCLComputeEngine::Initialize() first", (void)OpenCLComputeEngine::GetInstance());
    THROWS(OpenCLError, "call OpenCLComputeEngine::Initialize() first", KernelProgram("kernel void f() {}"));
    THROWS(OpenCLError, "call CommandQueuePool::Initialize() first", CommandQueuePool::GetNextQueue());
    CHECK(!OpenCLCore::IsInitialized() && !OpenCLComputeEngine::IsInitialized());
}

static void the_device_type_is_no_wish(const char *platform) {
    if (platform != nullptr && std::strcmp(platform, "host") == 0) {
        // Without the variable, a GPU that is not there is not replaced by the processor.
        CHECK(unsetenv("HIPCL_PLATFORM") == 0);
        THROWS(std::runtime_error, "", OpenCLCore::Initialize(DeviceType::GPU));
        OpenCLCore::Initialize(DeviceType::CPU);
        CHECK(OpenCLCore::GetInstance().GetDeviceInfo().find("host") != std::string::npos);
        THROWS(OpenCLError, "another device type", OpenCLCore::Initialize(DeviceType::GPU));
        OpenCLCore::Cleanup();
        CHECK(setenv("HIPCL_PLATFORM", platform, 1) == 0);
    }
    OpenCLComputeEngine::Initialize();
    OpenCLComputeEngine::Initialize();
    CHECK(OpenCLComputeEngine::IsInitialized());
}

static void kernels_hip_and_transfers_take_turns(OpenCLComputeEngine &engine) {
    const auto program = engine.LoadProgram(SOURCE);
    const cl_kernel add = engine.GetKernel(program, "add"), twice = engine.GetKernel(program, "twice");
    CHECK(add == program->GetOrCreateKernel("add") && program->GetKernelCount() == 2 && program->HasKernel("twice"));
    const hipcl::Stream stream = engine.GetBridge().stream();
    hipcl::Kernel on_stream = program->GetSharedProgram().kernel("twice");
    for (const MemoryStrategy strategy : {MemoryStrategy::REGULAR_BUFFER, MemoryStrategy::AUTO}) {
        const auto buffer = engine.CreateBufferWithStrategy(LEN, strategy);
        const cl_mem object = buffer->GetCLMem();
        ComplexVector data = ramp(), found;
        const cl_event written = buffer->WriteAsync(data);
        engine.SetKernelArg(add, 1, 1.0f);
        // Launches on three queues: each sees what the one before it did.
        std::vector<cl_event> events = {written, engine.ExecuteKernelAsync(add, {object}, ALL, ANY),
                                        engine.ExecuteKernelAsync(twice, {object}, ALL, {64, 1, 1})};
        // HIP's turn, then OpenCL's with the object from before.
        on_stream.launch(stream, hipcl::Range(LEN), hipcl::Write{buffer->GetSharedBuffer()});
        events.push_back(engine.ExecuteKernelAsync(add, {object}, ALL, ANY));
        events.push_back(buffer->ReadAsync(found));
        engine.WaitForEvents(events);
        for (const cl_event event : events) engine.ReleaseEvent(event);
        for (std::size_t i = 0; i < LEN; i++) {
            CHECK(found[i] == ComplexFloat(4.0f * (static_cast<float>(i) + 1.0f) + 1.0f, 4.0f));
        }
        CHECK(buffer->ReadPartial(3).size() == 3 && buffer->ReadPartial(3)[2] == found[2]);
    }
}

// The program's own launch on a queue of the pool, held back by an event: a transfer on another queue comes after it.
static void transfers_come_after_the_programs_own_commands(OpenCLComputeEngine &engine, const Other &other) {
    const auto buffer = engine.CreateBufferWithData(ramp(), MemoryType::GPU_READ_WRITE);
    const cl_kernel twice = engine.GetKernel(engine.LoadProgram(SOURCE), "twice");
    const auto view = buffer->AsMemoryBuffer();
    view->SetAsKernelArg(twice, 0);
    cl_int error = -1, state = -1;
    const cl_event held = other.create_user_event(OpenCLCore::GetInstance().GetContext(), &error);
    CHECK(error == CL_SUCCESS);
    for (int i = 0; i < 4; i++) {
        const cl_command_queue queue = CommandQueuePool::GetNextQueue();
        if (i == 0) CHECK(other.launch(queue, twice, 1, nullptr, &ALL[0], nullptr, 1, &held, nullptr) == CL_SUCCESS);
    }
    ComplexVector found;
    const cl_event read = view->ReadAsync(found);
    CHECK(other.event_info(read, 0x11D3, sizeof state, &state, nullptr) == CL_SUCCESS && state != 0);
    CHECK(other.set_status(held, 0) == CL_SUCCESS);
    engine.WaitForEvent(read);
    CHECK(found[3] == 2.0f * ramp()[3] && found.back() == 2.0f * ramp().back());
    engine.ReleaseEvent(read);
    engine.ReleaseEvent(held);
}

// The same for HIP's turn: it begins when the held launch has ended.
static void hand_offs_wait_for_the_programs_own_commands(OpenCLComputeEngine &engine, const Other &other) {
    const auto buffer = engine.CreateHybridBuffer(LEN);
    buffer->Write(ramp());
    const cl_kernel twice = engine.GetKernel(engine.LoadProgram(SOURCE), "twice");
    buffer->SetAsKernelArg(twice, 0);
    cl_int error = -1, state = -1;
    const cl_event held = other.create_user_event(OpenCLCore::GetInstance().GetContext(), &error);
    CHECK(error == CL_SUCCESS);
    cl_event ended = nullptr;
    const cl_command_queue queue = CommandQueuePool::GetNextQueue();
    CHECK(other.launch(queue, twice, 1, nullptr, &ALL[0], nullptr, 1, &held, &ended) == CL_SUCCESS);
    std::atomic<bool> waits{false};
    std::thread owner([&] {
        while (!waits) std::this_thread::yield();
        CHECK(other.set_status(held, 0) == CL_SUCCESS);
    });
    waits = true;
    hipcl::Buffer &shared = buffer->GetSharedBuffer();
    CHECK(other.event_info(ended, 0x11D3, sizeof state, &state, nullptr) == CL_SUCCESS && state == 0);
    ComplexVector found(LEN);
    shared.download(found.data(), LEN);
    CHECK(found[3] == 2.0f * ramp()[3]);
    owner.join();
    engine.ReleaseEvent(ended);
    engine.ReleaseEvent(held);
}

// The same for a bridge's copy on a queue that it makes itself.
static void bridges_copy_after_the_programs_own_commands(OpenCLComputeEngine &engine, const Other &other) {
    const auto buffer = engine.CreateBufferWithData(ramp(), MemoryType::GPU_READ_WRITE);
    const cl_kernel twice = engine.GetKernel(engine.LoadProgram(SOURCE), "twice");
    const auto view = buffer->AsMemoryBuffer();
    view->SetAsKernelArg(twice, 0);
    cl_int error = -1;
    const cl_event held = other.create_user_event(OpenCLCore::GetInstance().GetContext(), &error);
    CHECK(error == CL_SUCCESS);
    const cl_command_queue queue = CommandQueuePool::GetNextQueue();
    CHECK(other.launch(queue, twice, 1, nullptr, &ALL[0], nullptr, 1, &held, nullptr) == CL_SUCCESS);
    std::atomic<bool> copies{false};
    std::thread owner([&] {
        while (!copies) std::this_thread::yield();
        CHECK(other.set_status(held, 0) == CL_SUCCESS);
    });
    ComplexVector found(LEN);
    copies = true;
    CLBufferBridge::CopyFromExternal(view->GetCLMem(), nullptr, nullptr, 0, LEN * sizeof(ComplexFloat), found.data());
    owner.join();
    CHECK(found[3] == 2.0f * ramp()[3] && found.back() == 2.0f * ramp().back());
    engine.ReleaseEvent(held);
}

static void buffers_refuse_what_they_cannot_do(OpenCLComputeEngine &engine) {
    const auto buffer = engine.CreateBufferWithStrategy(LEN, MemoryStrategy::SVM_COARSE_GRAIN);
    CHECK(buffer->IsSVM() && buffer->GetSVMPointer() != nullptr && buffer->GetCLMem() != nullptr);
    THROWS(OpenCLError, "do not fit", buffer->Write(ComplexVector(LEN + 1)));
    THROWS(OpenCLError, "elements are asked", buffer->ReadPartial(LEN + 1));
    {
        const ScopedMap map(buffer.get());
        static_cast<ComplexFloat *>(buffer->GetSVMPointer())[7] = 7.0f;
        THROWS(OpenCLError, "Unmap() first", buffer->GetSharedBuffer());
        THROWS(OpenCLError, "Unmap() first", buffer->Write(ramp()));
    }
    CHECK(buffer->Read()[7] == 7.0f);
    THROWS(OpenCLError, "SVM_FINE_SYSTEM", engine.CreateBufferWithStrategy(LEN, MemoryStrategy::SVM_FINE_SYSTEM));
    THROWS(std::invalid_argument, "0 elements", engine.CreateBuffer(0));
    THROWS(std::invalid_argument, "address space", engine.CreateHybridBuffer(SIZE_MAX / 4));
    const auto words = engine.CreateTypedBufferWithData(std::vector<std::int16_t>{1, 2, 3});
    CHECK((words->ReadAs<std::int16_t>() == std::vector<std::int16_t>{1, 2, 3}));
    THROWS(OpenCLError, "ReadAs<T>()", words->ReadFromGPU());

    THROWS(OpenCLError, "no_such_type", engine.LoadProgram("kernel void f(no_such_type x) {}"));
    const auto program = engine.LoadProgram(SOURCE);
    THROWS(OpenCLError, "twice", engine.GetKernel(program, "thrice"));
    const cl_kernel twice = engine.GetKernel(program, "twice");
    try {
        engine.ExecuteKernel(twice, {buffer->GetCLMem(), buffer->GetCLMem()}, ALL, ANY);
        CHECK(false);
    } catch (const OpenCLError &error) {
        CHECK(error.code() == -49 && std::strstr(error.what(), "CL_INVALID_ARG_INDEX (-49)") != nullptr);
    }
    THROWS(std::invalid_argument, "0 work-items", engine.ExecuteKernel(twice, {buffer->GetCLMem()}, ANY, ANY));
    THROWS(std::invalid_argument, "the kernel is null", engine.ExecuteKernel(nullptr, {}, ALL, ANY));
    THROWS(std::invalid_argument, "the pool has", CommandQueuePool::GetQueue(99));
}

static void memory_of_another_owner_is_used_in_place(OpenCLComputeEngine &engine, const Other &other) {
    const cl_context context = OpenCLCore::GetInstance().GetContext();
    const cl_mem native = other.buffer(context, CL_MEM_READ_WRITE, BYTES), fixed = other.buffer(context, CL_MEM_READ_ONLY, BYTES);
    const ExternalBufferInfo info = ExternalBufferInfo::Query(native);
    CHECK(info.size_bytes == BYTES && info.num_elements == LEN && info.context == context && info.IsReadWrite());
    CHECK(info.device == OpenCLCore::GetInstance().GetDevice() && !info.is_svm_compatible && info.IsBuffer());
    CHECK(OpenCLManager::GetInstance().GetQueueForBuffer(native) == OpenCLManager::GetInstance().GetQueue());
    ComplexVector data = ramp(), again(LEN);
    CLBufferBridge::CopyToExternal(native, context, nullptr, BYTES, data.data());
    {
        const auto wrapped = engine.WrapExternalMemoryBuffer(native, LEN);
        CHECK(wrapped->IsExternal() && wrapped->GetCLMem() == native);
        const auto program = engine.LoadProgram(SOURCE);
        engine.ExecuteKernel(engine.GetKernel(program, "twice"), {native}, ALL, ANY);
        const hipcl::Stream stream = engine.GetBridge().stream();
        hipcl::Kernel twice = program->GetSharedProgram().kernel("twice");
        twice.launch(stream, hipcl::Range(LEN), hipcl::Write{wrapped->GetSharedBuffer()});
        // A second one for the same object has the same memory.
        const auto second = OpenCLManager::GetInstance().WrapExternalBufferWithSVM(native, LEN, MemoryType::GPU_READ_WRITE);
        CHECK(second->Read()[5] == 4.0f * data[5]);
        CHECK(!CLBufferBridge::TryCopySVM(native, context, nullptr, BYTES, again.data(), true));
        CHECK(other.references(native) > 1);
    }
    CLBufferBridge::CopyFromExternal(native, context, nullptr, sizeof(ComplexFloat), sizeof(ComplexFloat), again.data());
    CHECK(again[0] == 4.0f * data[1]);

    const auto factory = engine.CreateBufferFactory();
    THROWS(OpenCLError, "fewer than", factory->WrapExternalBuffer(native, LEN + 1, MemoryType::GPU_READ_WRITE));
    THROWS(OpenCLError, "wrap it as GPU_READ_ONLY", factory->WrapExternalBuffer(fixed, LEN, MemoryType::GPU_READ_WRITE));
    {
        const auto reader = factory->WrapExternalBuffer(fixed, LEN, MemoryType::GPU_READ_ONLY);
        THROWS(OpenCLError, "read-only", reader->Write(data));
        CHECK(reader->Read().size() == LEN);
    }
    THROWS(std::invalid_argument, "null", ExternalBufferInfo::Query(nullptr));
    THROWS(OpenCLError, "bytes at", CLBufferBridge::CopyFromExternal(native, context, nullptr, 8, BYTES, again.data()));
    CHECK(other.references(native) == 1 && other.references(fixed) == 1);
    CHECK(other.release_mem(native) == CL_SUCCESS && other.release_mem(fixed) == CL_SUCCESS);

    // A view of shared virtual memory is recognised.
    const auto svm = engine.CreateBufferWithStrategy(LEN, MemoryStrategy::SVM_COARSE_GRAIN);
    if (ExternalBufferInfo::Query(svm->GetCLMem()).is_svm_compatible) {
        CHECK(CLBufferBridge::TryCopySVM(svm->GetCLMem(), nullptr, nullptr, BYTES, data.data(), false));
        CHECK(svm->Read() == data);
    }
}

static void another_context_is_registered_or_copied(OpenCLComputeEngine &engine, const Other &other) {
    const cl_device_id device = OpenCLCore::GetInstance().GetDevice();
    cl_int error = -1;
    const cl_context context = other.create_context(nullptr, 1, &device, nullptr, nullptr, &error);
    CHECK(error == CL_SUCCESS);
    const cl_command_queue queue = other.create_queue(context, device, 0, &error);
    CHECK(error == CL_SUCCESS);
    const cl_mem theirs = other.buffer(context, CL_MEM_READ_WRITE, BYTES);

    THROWS(OpenCLError, "RegisterExternalContext()", engine.WrapExternalMemoryBuffer(theirs, LEN));
    THROWS(OpenCLError, "RegisterExternalContext()", ExternalQueueWrapper{queue});
    THROWS(OpenCLError, "another context", CLBufferBridge::CopyToExternal(theirs, OpenCLCore::GetInstance().GetContext(),
                                                                          queue, BYTES, ramp().data()));

    // A copy is a copy: the counters say so.
    const auto ours = engine.CreateBufferWithData(ramp(), MemoryType::GPU_READ_WRITE);
    const std::uint64_t before = engine.GetCounters().data_set;
    BufferBridge::CopyBetweenContexts(ours->Get(), OpenCLCore::GetInstance().GetContext(), CommandQueuePool::GetNextQueue(),
                                      theirs, context, queue, BYTES);
    CHECK(engine.GetCounters().data_set - before == 2 * BYTES); // once to the host, once back
    ComplexVector again(LEN);
    CLBufferBridge::CopyFromExternal(theirs, context, queue, BYTES, again.data());
    CHECK(again == ramp());

    ExternalContextManager manager;
    manager.RegisterExternalContext(context, device, queue);
    CHECK(manager.IsRegistered(context) && manager.GetContextInfo(context).queue == queue);
    CHECK(OpenCLManager::GetInstance().GetQueueForBuffer(theirs) == queue);
    {
        const auto wrapped = manager.WrapExternalBuffer(theirs);
        CHECK(wrapped->GetNumElements() == LEN && wrapped->Read() == ramp());
        wrapped->Write(ComplexVector(LEN, 3.0f));
        CHECK(wrapped->GetSharedBuffer().info().bytes == BYTES);
        ExternalQueueWrapper wrapper(queue);
        wrapper.WaitForQueue(CommandQueuePool::GetNextQueue());
        const cl_event event = wrapper.RecordEvent();
        wrapper.Flush();
        engine.WaitForEvent(event);
        engine.ReleaseEvent(event);
    }
    CLBufferBridge::CopyFromExternal(theirs, context, queue, BYTES, again.data());
    CHECK(again.back() == 3.0f);
    manager.UnregisterExternalContext(context);
    CHECK(!manager.IsRegistered(context));
    CHECK(other.references(theirs) == 1);
    CHECK(other.release_mem(theirs) == CL_SUCCESS && other.release_queue(queue) == CL_SUCCESS);
    CHECK(other.release_context(context) == CL_SUCCESS);
}

static void queues_order_each_other(OpenCLComputeEngine &engine) {
    ExternalQueueWrapper first(CommandQueuePool::GetQueue(0)), second(CommandQueuePool::GetQueue(1));
    second.WaitForQueue(first.Get());
    const cl_event event = first.RecordEvent();
    second.WaitForEvent(event);
    first.Flush();
    second.Finish();
    engine.ReleaseEvent(event);
    CommandQueuePool::FlushAll();
    CommandQueuePool::FinishAll();
    CommandQueuePool::FinishQueue(1);
    const cl_command_queue next = CommandQueuePool::GetNextQueue();
    CHECK(CommandQueuePool::GetCurrentQueue() == next);
    CHECK(CommandQueuePool::GetQueue(CommandQueuePool::GetCurrentQueueIndex()) == next);
}

// Constants that kernels only read are shared by threads; each thread has its own data.
static void threads_share_the_engine(OpenCLComputeEngine &engine) {
    const std::shared_ptr<GPUMemoryBuffer> ones = engine.CreateBufferWithData(ComplexVector(LEN, 1.0f));
    const auto program = engine.LoadProgram(SOURCE);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&, t] {
            const auto data = engine.CreateBufferWithData(ComplexVector(LEN, static_cast<float>(t)), MemoryType::GPU_READ_WRITE);
            const cl_kernel sum = engine.GetKernel(program, "sum");
            for (int i = 0; i < 50; i++) engine.ReleaseEvent(engine.ExecuteKernelAsync(sum, {ones->Get(), data->Get()}, ALL, ANY));
            const ComplexVector found = data->ReadFromGPU();
            right += std::count(found.begin(), found.end(), ComplexFloat(static_cast<float>(t) + 50.0f)) == LEN;
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(right == 4);
}

static void objects_outlive_the_engine() {
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto buffer = engine.CreateBufferWithData(ramp(), MemoryType::GPU_READ_WRITE);
    auto legacy = LegacyBufferAdapter::FromLegacy(std::move(buffer), nullptr, nullptr);
    const auto program = engine.LoadProgram(SOURCE);
    CHECK(engine.TakeDeferredErrors().empty());
    OpenCLComputeEngine::Cleanup();
    CHECK(!OpenCLComputeEngine::IsInitialized() && KernelProgramCache::GetCacheSize() == 0);
    CHECK(legacy->Read() == ramp() && program->GetOrCreateKernel("add") != nullptr);
}

int main() {
    nothing_works_before_it_is_initialised();
    the_device_type_is_no_wish(std::getenv("HIPCL_PLATFORM"));
    auto &engine = OpenCLComputeEngine::GetInstance();
    {
        const Other other(OpenCLCore::GetInstance().GetPlatform());
        kernels_hip_and_transfers_take_turns(engine);
        transfers_come_after_the_programs_own_commands(engine, other);
        hand_offs_wait_for_the_programs_own_commands(engine, other);
        bridges_copy_after_the_programs_own_commands(engine, other);
        buffers_refuse_what_they_cannot_do(engine);
        const std::uint64_t copied = engine.GetCounters().data_set;
        memory_of_another_owner_is_used_in_place(engine, other);
        CHECK(copied == 0 && engine.GetCounters().data_set == 0);
        another_context_is_registered_or_copied(engine, other);
        queues_order_each_other(engine);
        threads_share_the_engine(engine);
    }
    objects_outlive_the_engine();
    // Once more from the beginning.
    OpenCLComputeEngine::Initialize();
    CHECK(OpenCLComputeEngine::GetInstance().CreateBufferWithData(ramp())->ReadFromGPU() == ramp());
    OpenCLComputeEngine::Cleanup();
    return 0;
}
