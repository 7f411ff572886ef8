//go:build !linux

package runs

// lockHeld reports whether a process holds a lock on a file, and whether the system tells: it tells only by taking the
// lock, which a run that starts at this moment must not find taken.
func lockHeld(string) (held, known bool) { return false, false }
