package shuffle

// InBlocks returns which of the n numbers is at place i of an epoch of a seed, in an order that takes one block of them
// after the other, of the given size: the blocks in the order of New(seed, epoch, ...), and the numbers of each in an
// order of their own. The numbers that make no whole block are the last of every epoch. size is 1 to n, and i is
// below n.
func InBlocks(seed, epoch, n, size, i uint64) uint64 {
	blocks := n / size
	at := blocks // the rest
	if i/size < blocks {
		order := New(seed, epoch, blocks)
		at = order.At(i / size)
	}
	within := New(mix(seed), epoch*(blocks+1)+at, min(size, n-at*size))
	return at*size + within.At(i%size)
}
