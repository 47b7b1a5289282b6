//! The iterative checker for lossless JSON text, and the byte arithmetic of the output ledger.
