package main

import "fmt"

// narrow writes the function for 8 lanes with AVX2: the eight state words in Y0..Y7, the message schedule on the stack,
// the rest to work with.
type narrow struct{ *assembler }

// word is the place of a word of the message schedule.
func word(i int) string { return fmt.Sprintf("%d(SP)", 32*(i%16)) }

func (n *narrow) function() {
	n.prologue("compress8", 16*32)
	for half := range 2 {
		n.load(half)
	}
	var s [8]string
	for i := range s {
		s[i] = fmt.Sprintf("Y%d", i)
		n.op("VMOVDQU %d(DI), %s", 32*i, s[i])
	}
	for i := range 64 {
		n.round(i, s)
		s = [8]string{s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6]}
	}
	for i, r := range s {
		n.op("VPADDD %d(DI), %s, %s", 32*i, r, r)
		n.op("VMOVDQU %s, %d(DI)", r, 32*i)
	}
	n.epilogue()
}

// load reads half a block of every message, eight words, and stores them transposed: word i of all messages together.
func (n *narrow) load(half int) {
	const mask = "Y9"
	n.op("VMOVDQU bigEndian<>(SB), %s", mask)
	var rows [8]string
	for i := range rows {
		rows[i] = fmt.Sprintf("Y%d", i)
		n.op("MOVQ %d(SI), AX", 8*i)
		n.op("VMOVDQU %d(AX)(DX*1), %s", 32*half, rows[i])
		n.op("VPSHUFB %s, %s, %s", mask, rows[i], rows[i])
	}
	s := shuffler{n.assembler, "Y8"}
	s.quadruples(rows[:])
	for c := range 4 {
		s.mix(&rows[c], &rows[4+c], "VPERM2I128 $0x20,", "VPERM2I128 $0x31,")
		n.op("VMOVDQU %s, %s", rows[c], word(8*half+c))
		n.op("VMOVDQU %s, %s", rows[4+c], word(8*half+4+c))
	}
}

func (n *narrow) round(i int, s [8]string) {
	a, b, c, d, e, f, g, h := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	const w, x, y, z = "Y8", "Y9", "Y10", "Y11"
	if i < 16 {
		n.op("VPADDD %s, %s, %s", word(i), h, h)
	} else {
		n.schedule(i, w)
		n.op("VPADDD %s, %s, %s", w, h, h)
	}
	n.op("VPBROADCASTD %d(R8), %s", 4*i, x)
	n.op("VPADDD %s, %s, %s", x, h, h)
	n.rotate(e, 6, x, z, "")
	n.rotate(e, 11, x, z, x)
	n.rotate(e, 25, x, z, x)
	n.op("VPADDD %s, %s, %s", x, h, h)
	n.op("VPXOR %s, %s, %s", f, g, y) // choice: g ^ (e & (f ^ g))
	n.op("VPAND %s, %s, %s", y, e, y)
	n.op("VPXOR %s, %s, %s", y, g, y)
	n.op("VPADDD %s, %s, %s", y, h, h)
	n.op("VPADDD %s, %s, %s", h, d, d)
	n.rotate(a, 2, x, z, "")
	n.rotate(a, 13, x, z, x)
	n.rotate(a, 22, x, z, x)
	n.op("VPADDD %s, %s, %s", x, h, h)
	n.op("VPOR %s, %s, %s", a, b, y) // majority: (a & b) | (c & (a | b))
	n.op("VPAND %s, %s, %s", c, y, y)
	n.op("VPAND %s, %s, %s", a, b, z)
	n.op("VPOR %s, %s, %s", y, z, y)
	n.op("VPADDD %s, %s, %s", y, h, h)
}

// rotate leaves in to the exclusive or of r rotated right by k and of and, if it is given.
func (n *narrow) rotate(r string, k int, to, work, and string) {
	const other = "Y12"
	n.op("VPSRLD $%d, %s, %s", k, r, work)
	n.op("VPSLLD $%d, %s, %s", 32-k, r, other)
	if and != "" {
		n.op("VPXOR %s, %s, %s", work, and, work)
	}
	n.op("VPXOR %s, %s, %s", other, work, to)
}

// schedule leaves word i of the message schedule in to, and stores it.
func (n *narrow) schedule(i int, to string) {
	const from, x, z = "Y13", "Y14", "Y15"
	n.op("VMOVDQU %s, %s", word(i), to)
	n.op("VPADDD %s, %s, %s", word(i+9), to, to)
	for _, t := range []struct{ word, i, j, down int }{{i + 1, 7, 18, 3}, {i + 14, 17, 19, 10}} {
		n.op("VMOVDQU %s, %s", word(t.word), from)
		n.op("VPSRLD $%d, %s, %s", t.down, from, x)
		n.rotate(from, t.i, x, z, x)
		n.rotate(from, t.j, x, z, x)
		n.op("VPADDD %s, %s, %s", x, to, to)
	}
	n.op("VMOVDQU %s, %s", to, word(i))
}
