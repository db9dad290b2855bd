//! What launchers say in the environment.

use std::fmt;

use super::WorldError;

/// Who started the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// None: the process is alone.
    Alone,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// `mpiexec` of MPICH, Intel MPI and others that use Hydra.
    Mpich,
    /// Slurm's `srun`.
    Slurm,
    /// PyTorch's `torchrun`.
    Torchrun,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone => "no launcher",
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Slurm => "srun",
            Self::Torchrun => "torchrun",
        })
    }
}

/// A process's place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) launcher: Launcher,
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) local_rank: usize,
    /// Whether all processes are on this machine, as far as the launcher says.
    pub(super) is_one_machine: bool,
}

/// The names of a launcher's variables.
struct Names {
    launcher: Launcher,
    /// Set if it was this launcher.
    sign: &'static str,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
}

/// In the order in which they count: `mpirun` within Slurm's allocation is `mpirun`. A batch script of Slurm's has
/// ranks too, but no step.
const LAUNCHERS: [Names; 4] = [
    Names {
        launcher: Launcher::Torchrun,
        sign: "TORCHELASTIC_RUN_ID",
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        local_size: "LOCAL_WORLD_SIZE",
    },
    Names {
        launcher: Launcher::OpenMpi,
        sign: "OMPI_COMM_WORLD_RANK",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Names {
        launcher: Launcher::Mpich,
        sign: "PMI_RANK",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
    },
    Names {
        launcher: Launcher::Slurm,
        sign: "SLURM_STEP_ID",
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_STEP_TASKS_PER_NODE",
    },
];

/// More processes than any machine has.
const MOST: usize = 1 << 24;

impl Place {
    pub(super) fn of(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, WorldError> {
        let Some(names) = LAUNCHERS.iter().find(|names| variable(names.sign).is_some()) else {
            return Ok(Self {
                launcher: Launcher::Alone,
                rank: 0,
                size: 1,
                local_rank: 0,
                is_one_machine: true,
            });
        };
        let launcher = names.launcher;
        let number = |name: &'static str| {
            let value = variable(name).ok_or(WorldError::Incomplete {
                launcher,
                missing: name,
            })?;
            let number = value.trim().parse().ok().filter(|number| *number <= MOST);
            number.ok_or(WorldError::Variable {
                name,
                value,
                reason: "is no number of processes",
            })
        };
        let below = |name: &'static str, number: usize, limit: usize| match number < limit {
            true => Ok(number),
            false => Err(WorldError::Variable {
                name,
                value: number.to_string(),
                reason: "is not below the number of processes",
            }),
        };
        let size = number(names.size)?;
        let rank = below(names.rank, number(names.rank)?, size)?;
        let local_rank = below(names.local_rank, number(names.local_rank)?, size)?;
        // Slurm's is a list as `2(x3)` for several machines, and other launchers may not say.
        let local_size = variable(names.local_size).and_then(|value| value.trim().parse::<usize>().ok());
        Ok(Self {
            launcher,
            rank,
            size,
            local_rank,
            is_one_machine: local_size == Some(size),
        })
    }
}
