package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The numbers of the types of metadata.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

const (
	version   = 3
	alignment = 32 // of the data, and of every tensor in it

	quantizationVersion = 2
)

// The numbers of token types.
const (
	tokenNormal      = 1
	tokenUnknown     = 2
	tokenControl     = 3
	tokenUserDefined = 4
	tokenUnused      = 5
	tokenByte        = 6
)

// metadata is the table of keys and values, encoded.
type metadata struct {
	count uint64
	raw   []byte
}

func (m *metadata) add(key string, value any) {
	m.count++
	m.raw = appendString(m.raw, key)
	kind := kindOf(value)
	m.raw = binary.LittleEndian.AppendUint32(m.raw, kind)
	m.raw = appendValue(m.raw, value)
}

func kindOf(value any) uint32 {
	switch value.(type) {
	case uint32:
		return typeUint32
	case int32:
		return typeInt32
	case float32:
		return typeFloat32
	case bool:
		return typeBool
	case string:
		return typeString
	case []string, []int32, []float32:
		return typeArray
	}
	panic(fmt.Sprintf("gguf: no metadata of type %T", value))
}

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case uint32:
		return binary.LittleEndian.AppendUint32(b, v)
	case int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	case float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendString(b, v)
	case []string:
		return appendArray(b, v)
	case []int32:
		return appendArray(b, v)
	case []float32:
		return appendArray(b, v)
	}
	panic(fmt.Sprintf("gguf: no metadata of type %T", value))
}

func appendArray[T any](b []byte, values []T) []byte {
	var zero T
	b = binary.LittleEndian.AppendUint32(b, kindOf(zero))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(values)))
	for _, v := range values {
		b = appendValue(b, v)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// metadata returns what a file says besides its tensors.
func (m *Model) metadata(c sizes, t Type) (*metadata, error) {
	d := &metadata{}
	d.add("general.architecture", "llama")
	d.add("general.type", "model")
	if m.Name != "" {
		d.add("general.name", m.Name)
	}
	d.add("general.alignment", uint32(alignment))
	d.add("general.file_type", map[Type]uint32{F32: 0, F16: 1, Q4_0: 2, Q8_0: 7}[t])
	if t == Q8_0 || t == Q4_0 {
		d.add("general.quantization_version", uint32(quantizationVersion))
	}
	for _, n := range []struct {
		key   string
		value int
	}{
		{"vocab_size", c.Vocab}, {"context_length", c.Positions}, {"embedding_length", c.Width}, {"block_count", c.Layers},
		{"feed_forward_length", c.Inner}, {"attention.head_count", c.Heads}, {"attention.head_count_kv", c.KVHeads},
		{"attention.key_length", c.HeadDim}, {"attention.value_length", c.HeadDim}, {"rope.dimension_count", c.HeadDim},
	} {
		d.add("llama."+n.key, uint32(n.value))
	}
	d.add("llama.attention.layer_norm_rms_epsilon", float32(c.NormEps))
	d.add("llama.rope.freq_base", float32(c.RopeTheta))
	if c.Scaling.Type == "linear" {
		d.add("llama.rope.scaling.type", "linear")
		d.add("llama.rope.scaling.factor", float32(c.Scaling.Factor))
	}
	return d, m.addTokenizer(d, c)
}

// addEnds adds the tokens that begin and end a text: those of config.json, or else of the tokenizer.
func (m *Model) addEnds(d *metadata, c sizes, idOf func(content string) (uint32, bool), start string) {
	startID, adds := idOf(start)
	if c.BOS == nil && adds {
		c.BOS = &startID
	}
	if end, ok := m.Tokenizer.EndOfText(); c.EOS == nil && ok {
		c.EOS = &end
	}
	if c.BOS != nil {
		d.add("tokenizer.ggml.bos_token_id", *c.BOS)
	}
	if c.EOS != nil {
		d.add("tokenizer.ggml.eos_token_id", *c.EOS)
	}
	d.add("tokenizer.ggml.add_bos_token", adds && *c.BOS == startID)
	if m.Template != "" {
		d.add("tokenizer.chat_template", m.Template)
	}
}

// header returns everything before the elements of the tensors.
func header(meta *metadata, entries []*entry) []byte {
	b := []byte("GGUF")
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(entries)))
	b = binary.LittleEndian.AppendUint64(b, meta.count)
	b = append(b, meta.raw...)
	offset := uint64(0)
	for _, e := range entries {
		b = appendString(b, e.name)
		dims := e.data.Shape.Dims
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dims)))
		for i := range dims { // the innermost first
			b = binary.LittleEndian.AppendUint64(b, uint64(dims[len(dims)-1-i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(e.kind))
		b = binary.LittleEndian.AppendUint64(b, offset)
		offset += uint64(e.bytes() + padding(e.bytes()))
	}
	return append(b, make([]byte, padding(len(b)))...)
}

// padding is what is missing to a multiple of the alignment.
func padding(n int) int { return -n & (alignment - 1) }
