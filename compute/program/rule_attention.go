package program

import "github.com/starling-network/starling/compute/tensor"

// ruleAttention checks the kinds of attention. Their operands are among q, k, v, do, lse, delta in this order; like
// says which of them each has the shape of, and result which of them the output has.
func ruleAttention(result byte, like string) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		q, k := in[0], in[1]
		if err := wantInts(op, 2); err != nil {
			return q, err
		}
		if query, key := op.Ints[0], op.Ints[1]; min(query, key) < 0 || max(query, key) > maxDim ||
			query < key && result != 'k' {
			return q, invalid("the first query is at %d, the first key at %d", query, key)
		}
		if !float(q.DType) || !float(k.DType) || q.Rank() != 4 || k.Rank() != 4 || q.Dims[0] != k.Dims[0] ||
			q.Dims[3] != k.Dims[3] || q.Dims[1]%k.Dims[1] != 0 {
			return q, invalid("queries %s and keys %s", q, k)
		}
		shapes := map[byte]tensor.Shape{'q': q, 'k': k, 'r': tensor.Make(tensor.Float32, q.Dims[:3]...)}
		for i, s := range in {
			if !s.Equal(shapes[like[i]]) {
				return q, invalid("operand %d is %s, want %s", i, s, shapes[like[i]])
			}
		}
		return shapes[result], nil
	}
}

// AttentionRoles says what the operands of a kind of attention are, a letter each: q, k, v, o for the gradient of the
// output, l for lse and d for delta. It is empty for other kinds.
func (k Kind) AttentionRoles() string {
	switch k {
	case CausalAttention:
		return "qkv"
	case CausalAttentionLSE:
		return "qk"
	case CausalAttentionGradQ, CausalAttentionGradK:
		return "qkvold"
	case CausalAttentionGradV:
		return "qkol"
	}
	return ""
}

// attentionPairs is the number of pairs of a query and a key that it sees, over all heads.
func attentionPairs(op *Operator, q, k tensor.Shape) uint64 {
	queries, keys, ahead := int64(q.Dims[2]), int64(k.Dims[2]), op.Ints[0]-op.Ints[1]
	// Query i sees min(keys, ahead+i+1) keys if that is positive.
	from := min(max(0, -ahead), queries)
	all := min(max(from, keys-ahead-1), queries) // the first query that sees all keys
	n := all - from
	pairs := uint64(n*(from+ahead) + n*(n+1)/2 + (queries-all)*keys)
	return saturatingMul(pairs, uint64(q.Dims[0]*q.Dims[1]))
}

// attentionFlops counts every kind on its own, and only the products: of queries and keys, and of weights and values.
func (p *Program) attentionFlops(op *Operator) uint64 {
	q, k := p.Ops[op.In[0]].Out, p.Ops[op.In[1]].Out
	products := map[Kind]uint64{CausalAttention: 2, CausalAttentionLSE: 1, CausalAttentionGradQ: 3,
		CausalAttentionGradK: 3, CausalAttentionGradV: 2}
	return saturatingMul(attentionPairs(op, q, k), products[op.Kind]*2*uint64(q.Dims[3]))
}
