package canon

import (
	"crypto/sha256"
	"encoding/binary"
)

//go:generate go run ./gen

// lanes is a compression function of SHA-256 that takes width messages side by side.
type lanes struct {
	width int
	// compress takes some blocks of 64 bytes of every message. Word i of message m is state[i*width+m].
	compress func(state *uint32, messages **byte, blocks int)
}

// initial is the state that SHA-256 begins with (FIPS 180-4, section 5.3.3).
var initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// Leaves digests leaves as Leaf does. Neighbours of equal length are digested side by side where that is faster.
func Leaves(data [][]byte) []Digest {
	out := make([]Digest, len(data))
	for i := 0; i < len(data); {
		n := 1
		for n < fastest.width && i+n < len(data) && len(data[i+n]) == len(data[i]) {
			n++
		}
		if n > 1 && n == fastest.width {
			fastest.leaves(out[i:i+n], data[i:i+n])
		} else {
			n = 1
			out[i] = Leaf(data[i])
		}
		i += n
	}
	return out
}

// leaves digests width leaves of one length: the message of each is a zero byte and the leaf.
func (l lanes) leaves(out []Digest, data [][]byte) {
	const most = 16 // lanes
	var state [8 * most]uint32
	var messages [most]*byte
	for i, x := range initial {
		for m := range l.width {
			state[i*l.width+m] = x
		}
	}
	size := len(data[0])
	head := min(size, sha256.BlockSize-1) // bytes of the leaf in the first block
	whole := (size - head) / sha256.BlockSize
	tail := head + whole*sha256.BlockSize // where what fills no block begins

	// The ends of all messages, and their first blocks where those hold no end, are copied out to be padded.
	var ends [most][2 * sha256.BlockSize]byte
	var first [most][sha256.BlockSize]byte
	if head == sha256.BlockSize-1 {
		for m, leaf := range data {
			copy(first[m][1:], leaf[:head])
			messages[m] = &first[m][0]
		}
		l.compress(&state[0], &messages[0], 1)
		if whole > 0 {
			for m, leaf := range data {
				messages[m] = &leaf[head]
			}
			l.compress(&state[0], &messages[0], whole)
		}
	}
	blocks := 0
	for m, leaf := range data {
		end := &ends[m]
		n := 0
		if head == sha256.BlockSize-1 {
			n = copy(end[:], leaf[tail:])
		} else {
			n = 1 + copy(end[1:], leaf)
		}
		end[n] = 0x80
		blocks = (n+8)/sha256.BlockSize + 1
		binary.BigEndian.PutUint64(end[blocks*sha256.BlockSize-8:], 8*(uint64(size)+1))
		messages[m] = &end[0]
	}
	l.compress(&state[0], &messages[0], blocks)
	for m := range out {
		for i := range initial {
			binary.BigEndian.PutUint32(out[m][4*i:], state[i*l.width+m])
		}
	}
}
