package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// entry is one tensor of a file.
type entry struct {
	name  string
	kind  Type
	heads int // of rows that are put in another order; 0 for none
	data  *tensor.Tensor
}

// names maps the names of tensors; those of a layer stand for the part after its number.
var names = map[string]string{
	"model.embed_tokens.weight":       "token_embd.weight",
	"model.norm.weight":               "output_norm.weight",
	"lm_head.weight":                  "output.weight",
	"self_attn.q_proj.weight":         "attn_q.weight",
	"self_attn.k_proj.weight":         "attn_k.weight",
	"self_attn.v_proj.weight":         "attn_v.weight",
	"self_attn.o_proj.weight":         "attn_output.weight",
	"mlp.gate_proj.weight":            "ffn_gate.weight",
	"mlp.up_proj.weight":              "ffn_up.weight",
	"mlp.down_proj.weight":            "ffn_down.weight",
	"input_layernorm.weight":          "attn_norm.weight",
	"post_attention_layernorm.weight": "ffn_norm.weight",
}

// entries returns the tensors in the order of the config.
func (m *Model) entries(c sizes, t Type) ([]*entry, error) {
	var entries []*entry
	for _, want := range m.Config.Tensors() {
		data := m.Tensors[want.Name]
		if data == nil {
			return nil, fmt.Errorf("%w: tensor %q is missing", ErrModel, want.Name)
		}
		if !data.Shape.Equal(want.Shape) {
			return nil, fmt.Errorf("%w: tensor %q is %s, want %s", ErrModel, want.Name, data.Shape, want.Shape)
		}
		e := &entry{name: names[want.Name], kind: F32, data: data}
		if layered, ok := strings.CutPrefix(want.Name, "model.layers."); ok {
			number, part, _ := strings.Cut(layered, ".")
			e.name = "blk." + number + "." + names[part]
			switch part {
			case "self_attn.q_proj.weight":
				e.heads = c.Heads
			case "self_attn.k_proj.weight":
				e.heads = c.KVHeads
			}
		}
		if data.Shape.Rank() > 1 {
			e.kind = t
			if t == Q4_0 && !strings.HasPrefix(e.name, "blk.") {
				e.kind = Q8_0
			}
			if e.kind != F32 && e.width()%block != 0 {
				e.kind = F16
			}
		}
		if err := e.check(want.Name); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if factors := m.Config.RotaryFactors(); factors != nil {
		entries = append(entries, &entry{name: "rope_freqs.weight", kind: F32, data: tensor.FromF32(factors, len(factors))})
	}
	return entries, nil
}

const (
	block      = 32 // elements of Q8_0 and Q4_0 with one scale
	blockBytes = 2 + block
	smallBytes = 2 + block/2 // of Q4_0
	maxF16     = 65504
)

// width is the length of a row.
func (e *entry) width() int { return e.data.Shape.Dims[e.data.Shape.Rank()-1] }

func (e *entry) bytes() int {
	n := e.data.Shape.Elements()
	switch e.kind {
	case F16:
		return 2 * n
	case Q8_0:
		return n / block * blockBytes
	case Q4_0:
		return n / block * smallBytes
	}
	return 4 * n
}

// check makes sure that every value fits the type. The scale of a block is a 127th or an eighth of a value.
func (e *entry) check(name string) error {
	limit := float32(math.MaxFloat32)
	switch e.kind {
	case F16:
		limit = maxF16
	case Q8_0:
		limit = maxF16 * 127
	case Q4_0:
		limit = maxF16 * 8
	}
	for i, x := range e.data.F32() {
		if !(x <= limit && x >= -limit) {
			return fmt.Errorf("%w: element %d of %q is %v, and the file is %s", ErrRange, i, name, x, e.kind)
		}
	}
	return nil
}

// write writes the rows, and zeros up to the alignment.
func (e *entry) write(w io.Writer) error {
	width := e.width()
	all := e.data.F32()
	raw := make([]byte, 0, 4*width)
	for i := range len(all) / width {
		r := e.row(i)
		raw = appendRow(raw[:0], all[r*width:(r+1)*width], e.kind)
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	_, err := w.Write(make([]byte, padding(e.bytes())))
	return err
}

// row returns which row of the tensor is row i of the file. Rotary positions turn pairs of elements of a head: Hugging
// Face pairs element j of the first half with element j of the second, llama.cpp's llama pairs neighbours.
func (e *entry) row(i int) int {
	if e.heads == 0 {
		return i
	}
	size := e.data.Shape.Dims[0] / e.heads
	head, j := i/size, i%size
	return head*size + j%2*(size/2) + j/2
}

func appendRow(raw []byte, row []float32, kind Type) []byte {
	switch kind {
	case F16:
		for _, x := range row {
			raw = binary.LittleEndian.AppendUint16(raw, kernel.ToFloat16(x))
		}
	case Q8_0:
		for ; len(row) > 0; row = row[block:] {
			raw = appendBlock(raw, row[:block])
		}
	case Q4_0:
		for ; len(row) > 0; row = row[block:] {
			raw = appendSmall(raw, row[:block])
		}
	default:
		for _, x := range row {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
	}
	return raw
}

// appendBlock quantises 32 values by their scale, a 127th of the largest.
func appendBlock(raw []byte, x []float32) []byte {
	largest := float32(0)
	for _, v := range x {
		largest = max(largest, v, -v)
	}
	scale := largest / 127
	raw = binary.LittleEndian.AppendUint16(raw, kernel.ToFloat16(scale))
	for _, v := range x {
		raw = append(raw, byte(kernel.Quantize(v, scale)))
	}
	return raw
}

// appendSmall quantises 32 values to 4 bits by their scale, an eighth of the value farthest from zero, whose number is
// then 0, as ggml does. A byte holds an element of the first half and, above it, that of the second.
func appendSmall(raw []byte, x []float32) []byte {
	farthest := float32(0)
	for _, v := range x {
		if max(v, -v) > max(farthest, -farthest) {
			farthest = v
		}
	}
	scale := farthest / -8
	raw = binary.LittleEndian.AppendUint16(raw, kernel.ToFloat16(scale))
	small := func(v float32) byte {
		if scale == 0 {
			return 8 // zero
		}
		return byte(min(15, max(0, int(v/scale+8.5))))
	}
	for i := range block / 2 {
		raw = append(raw, small(x[i])|small(x[i+block/2])<<4)
	}
	return raw
}
