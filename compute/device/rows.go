package device

import (
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/view"
)

// Limits of kernels: of the width of the heads of attention, which a work-item holds, and of the length of sums that
// are added in two levels. The processor computes steps beyond them.
const (
	maxWidth = 256
	maxSum   = piece * piece
)

// attention is the launches of a step of attention; none for shapes without a kernel.
func (b *binding) attention(a *lower.Attention) (list []Launch) {
	batch, heads, queries, width := a.Q.Dims[0], a.Q.Dims[1], a.Q.Dims[2], a.Q.Dims[3]
	groups, keys := a.K.Dims[1], a.K.Dims[2]
	if width > maxWidth || keys > maxSum {
		return nil
	}
	numbers := []int64{int64(heads), int64(groups), int64(queries), int64(keys), int64(a.Query), int64(a.Key)}
	for _, l := range []*lower.Location{a.Q, a.K, a.V, a.DO, a.O, a.DQ, a.DK, a.DV} {
		if l == nil {
			numbers = append(numbers, -1, 0, 0, 0)
			continue
		}
		numbers = append(numbers, b.at(*l), int64(l.Strides[0]), int64(l.Strides[1]), int64(l.Strides[2]))
	}
	for _, l := range []*lower.Location{a.LSE, a.Delta, a.Rows} {
		if l == nil {
			numbers = append(numbers, -1)
			continue
		}
		numbers = append(numbers, b.at(*l))
	}
	b.printer.attention(width)
	add := func(wanted bool, name string, rows, heads int) {
		if wanted {
			name += "_" + strconv.Itoa(width)
			list = append(list, b.launch(name, [3]int{rows, heads, batch}, numbers...))
		}
	}
	add(!a.Gradients, "attention_forward", queries, heads)
	add(a.DQ != nil, "attention_queries", queries, heads)
	add(a.DK != nil, "attention_keys", keys, groups)
	add(a.DV != nil, "attention_values", keys, groups)
	return list
}

// attention prints the kernels for heads of a width, once.
func (p *printer) attention(width int) {
	text := strings.ReplaceAll(attention, "WIDTH", strconv.Itoa(width))
	if _, known := p.names[text]; !known {
		p.names[text] = ""
		p.text.WriteString("\n" + text)
	}
}

// crossEntropy is the launch of a step about rows of logits.
func (b *binding) crossEntropy(st *lower.Step) []Launch {
	rows, n := st.In[0].Dims[0], st.In[0].Dims[1]
	if n > maxSum {
		return nil
	}
	name, numbers := "cross_entropy_", []int64{int64(n), b.at(st.In[0]), b.at(st.In[1]), b.at(st.Out)}
	if st.Kind == program.CrossEntropyGrad {
		name, numbers = name+"grad_", append(numbers, b.at(st.In[2]))
	}
	return []Launch{b.grouped(name+typeOf(st.In[1].Type), [3]int{lanes * rows, 1, 1}, [3]int{lanes, 1, 1}, numbers...)}
}

// check finds indices of a step that are none of a row.
type check struct {
	launch  Launch // sets the flag to the position of the first
	flag    int64  // place
	indices lower.Location
	rows    int
	op      int
	kind    program.Kind
}

// addressed is the launches of a step whose rows are addressed by indices, and the check that comes before.
func (b *binding) addressed(st *lower.Step) ([]Launch, *check) {
	table, indices := st.In[0], st.In[1]
	count, rows := view.Elements(indices.Dims), table.Dims[0]
	width, kind := view.Elements(table.Dims[1:]), typeOf(indices.Type)
	c := &check{flag: b.layout.flag, indices: indices, rows: rows, op: st.Op, kind: st.Kind}
	numbers := []int64{int64(count), int64(rows), b.at(indices), c.flag}
	c.launch = b.launch("check_rows_"+kind, [3]int{count, 1, 1}, numbers...)
	if st.Kind == program.AddRows {
		var list []Launch
		if from, to := b.at(table), b.at(st.Out); from != to {
			list = append(list, b.copied(from, to, 4*rows*width))
		}
		numbers = append(numbers, int64(width), b.at(st.In[2]), b.at(st.Out))
		return append(list, b.launch("add_rows_"+kind, [3]int{width, 1, 1}, numbers...)), c
	}
	name, width := "take_bytes_", width*table.Type.Size()
	if table.Type.Size()%4 == 0 {
		name, width = "take_words_", width/4
	}
	numbers = append(numbers, int64(width), b.at(table), b.at(st.Out))
	return []Launch{b.launch(name+kind, [3]int{width, count, 1}, numbers...)}, c
}

// concat is the launches of a step that puts tensors together: rows of each are pieces of the rows of the result.
func (b *binding) concat(st *lower.Step) (list []Launch) {
	axis, to := st.Ints[0], b.at(st.Out)
	rows, size := view.Elements(st.Out.Dims[:axis]), st.Out.Type.Size()
	all := view.Elements(st.Out.Dims[axis:]) * size
	for _, x := range st.In {
		width := view.Elements(x.Dims[axis:]) * size
		list = append(list, b.launch("place_rows", [3]int{width, rows, 1}, b.at(x), to, int64(width), int64(all)))
		to += int64(width)
	}
	return list
}
