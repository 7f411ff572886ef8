package kernel

// The functions of this file compute a sum a part at a time: what is kept between two parts is all there is to know
// about the elements before, so the end has the bits of the whole.

// SumState is the number of float32 between two parts of a Sum of n elements: lanes for each level of its tree.
func SumState(n int) int {
	levels := 1
	for unit := ChunkSum; unit < n; unit *= ChunkSum {
		levels++
	}
	return levels * lanes
}

// SumPart adds x as element at of a list to its SumState, which is zeros before element 0.
func SumPart(state []float32, at int, x float32) {
	for {
		state[at%lanes] += x
		if at++; at%ChunkSum != 0 || len(state) == lanes {
			return
		}
		x = sumLanes((*[lanes]float32)(state))
		clear(state[:lanes])
		state, at = state[lanes:], at/ChunkSum-1
	}
}

// SumEnd returns the Sum of n elements from their SumState, which it destroys.
func SumEnd(state []float32, n int) float32 {
	for len(state) > lanes {
		if n%ChunkSum != 0 {
			state[lanes+n/ChunkSum%lanes] += sumLanes((*[lanes]float32)(state))
		}
		state, n = state[lanes:], (n+ChunkSum-1)/ChunkSum
	}
	return sumLanes((*[lanes]float32)(state))
}
