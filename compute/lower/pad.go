package lower

import "github.com/starling-network/starling/compute/view"

// Padded is where the elements of the operand of a step of kind Pad are in its result.
func (st *Step) Padded() view.View {
	x := st.In[0]
	rank := len(x.Dims)
	to := view.View{Dims: x.Dims, Strides: make([]int, rank)}
	for i, stride := range view.Strides(st.Out.Dims) {
		to.Offset += int(st.Ints[i]) * stride
		to.Strides[i] = stride * int(st.Ints[2*rank+i]+1)
	}
	return to.Merged()
}
