package parquet

import (
	"encoding/binary"
	"errors"
)

// The element types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

const maxThriftDepth = 32

var errThrift = errors.New("not a structure of Thrift's compact protocol")

// thrift reads structures from the front of data. After the first error everything it reads is zero.
type thrift struct {
	data  []byte
	at    int // bytes read
	depth int
	bad   bool
}

func (t *thrift) err() error {
	if t.bad {
		return errThrift
	}
	return nil
}

func (t *thrift) take(n uint64) []byte {
	if t.bad || n > uint64(len(t.data)-t.at) {
		t.bad = true
		return nil
	}
	b := t.data[t.at : t.at+int(n)]
	t.at += int(n)
	return b
}

func (t *thrift) byte() byte {
	if b := t.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (t *thrift) uvarint() uint64 {
	x, n := binary.Uvarint(t.data[t.at:])
	if n <= 0 {
		t.bad = true
		return 0
	}
	t.at += n
	return x
}

// fields calls visit for the fields of a structure, which must read the field's value or return false.
func (t *thrift) fields(visit func(id int64, kind byte) bool) {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxThriftDepth {
		t.bad = true
	}
	for id := int64(0); !t.bad; {
		head := t.byte()
		kind := head & 15
		if kind == 0 {
			return
		}
		if delta := int64(head >> 4); delta > 0 {
			id += delta
		} else {
			id = unzigzag(t.uvarint())
		}
		if !visit(id, kind) {
			t.skip(kind)
		}
	}
}

// structure is fields for a value that must be one.
func (t *thrift) structure(kind byte, visit func(id int64, kind byte) bool) bool {
	if t.expect(kind == thriftStruct) {
		t.fields(visit)
	}
	return true
}

// list calls visit for the elements of a list, which must read one each.
func (t *thrift) list(kind byte, visit func(kind byte)) bool {
	if !t.expect(kind == thriftList || kind == thriftSet) {
		return true
	}
	head := t.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	for ; size > 0 && !t.bad; size-- {
		visit(head & 15)
	}
	return true
}

func (t *thrift) int(kind byte, into *int64) bool {
	if t.expect(kind >= thriftI16 && kind <= thriftI64) {
		*into = unzigzag(t.uvarint())
	}
	return true
}

func (t *thrift) text(kind byte, into *string) bool {
	if t.expect(kind == thriftBinary) {
		*into = string(t.take(t.uvarint()))
	}
	return true
}

func (t *thrift) expect(ok bool) bool {
	t.bad = t.bad || !ok
	return !t.bad
}

func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse: // the value is the type
	case thriftByte:
		t.byte()
	case thriftI16, 5, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.take(8)
	case thriftBinary:
		t.take(t.uvarint())
	case thriftList, thriftSet:
		t.list(kind, t.skipElement)
	case thriftMap:
		t.skipMap()
	case thriftStruct:
		t.fields(func(int64, byte) bool { return false })
	case thriftUUID:
		t.take(16)
	default:
		t.bad = true
	}
}

// skipElement skips what is in a list or map, where a boolean is a byte.
func (t *thrift) skipElement(kind byte) {
	t.depth++
	defer func() { t.depth-- }()
	if !t.expect(t.depth <= maxThriftDepth) {
		return
	}
	if kind == thriftTrue || kind == thriftFalse {
		kind = thriftByte
	}
	t.skip(kind)
}

func (t *thrift) skipMap() {
	size := t.uvarint()
	if size == 0 || t.bad {
		return
	}
	kinds := t.byte()
	for ; size > 0 && !t.bad; size-- {
		t.skipElement(kinds >> 4)
		t.skipElement(kinds & 15)
	}
}

func unzigzag(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }
