package recompute

import (
	"math"

	"github.com/starling-network/starling/compute/kernel/attention"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/attend"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// attentionRange cuts a range in rows of one head. Rows of queries need the keys that they visit; rows of keys, which
// lie in one block, need the queries that visit it, of all heads that share them.
func attentionRange(op *program.Operator, in []tensor.Shape, lo, hi int) []piece {
	rows, width := op.Out.Dims[2], view.Elements(op.Out.Dims[3:])
	a, group := attend.Head(op, in), in[0].Dims[1]/in[1].Dims[1]
	var out []piece
	for lo < hi {
		head := lo / width / rows
		batch, head, from := head/op.Out.Dims[1], head%op.Out.Dims[1], lo/width%rows
		to := min(rows, from+(lo%width+hi-lo+width-1)/width)
		var p piece
		if op.Kind == program.CausalAttentionGradK || op.Kind == program.CausalAttentionGradV {
			to = min(to, ((a.Key+from)/attention.Block+1)*attention.Block-a.Key)
			p = keyRows(op, in, a, batch, head, group, from, to)
		} else {
			p = queryRows(op, in, a, batch, head, group, from, to)
		}
		n := min(hi-lo, (to-from)*width-lo%width)
		if p.op == nil { // no query visits the keys
			p.data = make([]byte, 4*n)
		} else {
			for i := range n {
				p.take = append(p.take, lo%width+i)
			}
		}
		out = append(out, p)
		lo += n
	}
	return out
}

func queryRows(op *program.Operator, in []tensor.Shape, a attention.Head, batch, head, group, from, to int) piece {
	single := &program.Operator{Kind: op.Kind, Ints: []int64{int64(a.Query + from), int64(a.Key)}}
	single.Out = tensor.Make(tensor.Float32, append([]int{1, 1, to - from}, op.Out.Dims[3:]...)...)
	p := piece{op: single}
	for k, s := range in {
		if k == 1 || k == 2 {
			p.in = append(p.in, gather.Rows(k, s, batch, head/group, 1, 0, a.Visited(to-1)))
		} else {
			p.in = append(p.in, gather.Rows(k, s, batch, head, 1, from, to))
		}
	}
	return p
}

func keyRows(op *program.Operator, in []tensor.Shape, a attention.Head, batch, head, group, from, to int) piece {
	first := a.First(from)
	if first == a.Queries {
		return piece{}
	}
	single := &program.Operator{Kind: op.Kind, Ints: []int64{int64(a.Query + first), int64(a.Key + from)}}
	single.Out = tensor.Make(tensor.Float32, 1, 1, to-from, op.Out.Dims[3])
	p := piece{op: single}
	for k, s := range in {
		if k == 1 || k == 2 && op.Kind == program.CausalAttentionGradK {
			p.in = append(p.in, gather.Rows(k, s, batch, head, 1, from, to))
		} else {
			p.in = append(p.in, gather.Rows(k, s, batch, head*group, group, first, a.Queries))
		}
	}
	return p
}

func times(a, b int) int {
	if b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}
