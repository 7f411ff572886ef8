package kernel

// runs reports whether the processor has the instructions of p: every one of this port has those of NEON.
func (p Path) runs() bool { return p == Portable || p == NEON }
