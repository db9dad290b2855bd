//! The C library as C and C++ programs see it: its header, its symbols, and programs that are compiled against it.

mod arguments;
mod declarations;
mod header;
mod manager;
mod programs;
mod symbols;
mod toolchain;
