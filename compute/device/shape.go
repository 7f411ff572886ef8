package device

import (
	"strconv"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// shaped is the launches of a step that makes places or random words, or puts, takes or adds elements by their places;
// none for other steps.
func (b *binding) shaped(st *lower.Step) []Launch {
	out, n := b.at(st.Out), view.Elements(st.Out.Dims)
	switch st.Kind {
	case program.Iota:
		axis := int(st.Ints[0])
		return []Launch{b.launch("iota_"+typeOf(st.Out.Type), [3]int{n, 1, 1}, int64(n), out,
			int64(view.Elements(st.Out.Dims[axis+1:])), int64(st.Out.Dims[axis]))}
	case program.Random:
		return []Launch{b.launch("random", [3]int{(n + 3) / 4, 1, 1}, int64(n), b.at(st.In[0]), out)}
	case program.Pad:
		return b.pad(st)
	case program.FirstMax:
		width := view.Elements(view.Pick(st.In[0].Dims, st.Ints))
		return []Launch{b.launch("first_max", [3]int{n / width, 1, 1}, int64(n/width), int64(width), b.at(st.In[0]), out)}
	case program.SumWindows:
		return []Launch{b.launch("sum_windows", [3]int{n, 1, 1}, append([]int64{int64(n), b.at(st.In[0]), out},
			windowsOf(st)...)...)}
	}
	return nil
}

// pad fills the result, and puts the elements in their places.
func (b *binding) pad(st *lower.Step) []Launch {
	x, out, to := st.In[0], b.at(st.Out), st.Padded()
	bits, n := strconv.Itoa(8*x.Type.Size()), view.Elements(st.Out.Dims)
	numbers := []int64{int64(view.Elements(x.Dims)), b.at(x), out + int64(to.Offset*x.Type.Size()), int64(len(to.Dims))}
	for d, dim := range to.Dims {
		numbers = append(numbers, int64(dim), int64(to.Strides[d]))
	}
	return []Launch{b.launch("fill_"+bits, [3]int{n, 1, 1}, int64(n), b.at(st.In[1]), out),
		b.launch("scatter_"+bits, [3]int{view.Elements(x.Dims), 1, 1}, numbers...)}
}

// windowDims is the number of dimensions that the kernel for windows has: the most that windows of a tensor have.
const windowDims = tensor.MaxRank / 2

// windowsOf describes each of windowDims dimensions of the result of SumWindows, as its kernel takes it; those that the
// result has not come first.
func windowsOf(st *lower.Step) (list []int64) {
	rank := len(st.Out.Dims)
	for range windowDims - rank {
		list = append(list, 1, 1, 1, 1, 1)
	}
	for d := range rank {
		list = append(list, int64(st.Out.Dims[d]), int64(st.In[0].Dims[d]), st.Ints[d], st.Ints[rank+d], st.Ints[2*rank+d])
	}
	return list
}
