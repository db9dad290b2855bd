use std::time::Duration;

/// Why processes that were started together do not find each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A variable of the launcher.
    #[error("{name}=`{value}` {reason}; start the program by mpirun, srun or torchrun, or unset the variable")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A launcher that says only a part.
    #[error("{launcher} started the program but {missing} is not set: export it to the processes")]
    Incomplete {
        /// Who started it.
        launcher: super::Launcher,
        /// The variable.
        missing: &'static str,
    },
    /// Several machines, and no place to meet.
    #[error(
        "the processes are on several machines, and {launcher} names no place to meet: set HIPCL_WORLD=tcp://HOST:PORT to a \
         free port of the machine with the first process, for all of them"
    )]
    NoMeeting {
        /// Who started them.
        launcher: super::Launcher,
    },
    /// More processes than GPUs.
    #[error(
        "process {local_rank} of this machine has no GPU of its own, as there are {devices}: start one process for each GPU"
    )]
    NoDevice {
        /// The process.
        local_rank: usize,
        /// How many GPUs there are.
        devices: usize,
    },
    /// Processes that did not come.
    #[error(
        "rank {rank} waited {limit:?} at {at} for {absent}: see whether they run; if a script stands between the launcher and \
         the program, set HIPCL_WORLD=tcp://HOST:PORT"
    )]
    Late {
        /// Who waited.
        rank: usize,
        /// For how long.
        limit: Duration,
        /// Where.
        at: String,
        /// For whom.
        absent: String,
    },
    /// More bytes than are shared.
    #[error("{bytes} bytes are too many to share at the start, at most {most}: share data by RCCL or files")]
    TooLarge {
        /// How many.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Processes that count differently.
    #[error("rank {rank} at {at}: {reason}; all processes have to be of one start, and to call `share` equally often")]
    Disagree {
        /// Who noticed.
        rank: usize,
        /// Where.
        at: String,
        /// What differs.
        reason: String,
    },
    /// A process that ended before its work was done.
    #[error("rank {rank} ended before its work was done: see what it wrote last, and start all of them again")]
    Lost {
        /// Which.
        rank: usize,
    },
    /// The processes could not be joined for collectives.
    #[error(transparent)]
    Collectives(#[from] rccl::Error),
    /// A socket.
    #[error("{call} at {at}: check the address, and whether the port is free")]
    Socket {
        /// What was tried.
        call: &'static str,
        /// Where.
        at: String,
        /// Why it failed.
        source: std::io::Error,
    },
}
