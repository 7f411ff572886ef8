package exact

import "unsafe"

const multiplies = false

// sumExact writes the sums of products of 4 rows of A and the lanes of a panel of B, over turns of step elements of k.
// aRow is in bytes.
//
//go:noescape
func sumExact(sums *[tileRows * lanes]int32, a, b unsafe.Pointer, aRow, turns int)

// runExact adds blocks of integer products to 4 rows of C.
func runExact(x *arguments) {
	var sums [tileRows * lanes]int32
	columns := lanes >> x.wide
	scaleB := unsafe.Slice((*float32)(x.scaleB), x.blocks*columns)
	for b := range x.blocks {
		k := b * x.turns * step
		sumExact(&sums, unsafe.Add(x.a, 2*k), unsafe.Add(x.b, 2*k*lanes), x.aRow, x.turns)
		for r := range tileRows {
			c := unsafe.Slice((*float32)(unsafe.Add(x.c, r*x.cRow)), columns)
			scale := *(*float32)(unsafe.Add(x.scaleA, r*x.scaleRow+4*b))
			low := sums[r*lanes : (r+1)*lanes]
			for j := range c {
				sum := float32(low[j])
				if x.wide > 0 {
					sum = float32(int64(low[j])<<7 + int64(low[columns+j]))
				}
				c[j] += float32(sum * (scale * scaleB[b*columns+j]))
			}
		}
	}
}

// There is no assembly for these: multiplies is false, and nothing gets here.
func runNarrow512(*arguments512) { panic("exact: no AVX-512 on this port") }
func runWide512(*arguments512)   { panic("exact: no AVX-512 on this port") }
func quantise512(*lines)         { panic("exact: no AVX-512 on this port") }
