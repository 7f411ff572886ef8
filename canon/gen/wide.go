package main

import "fmt"

// wide writes the function for 16 lanes with AVX-512F and BW: the eight state words in Z0..Z7, the sixteen words of the
// message schedule in Z8..Z23, the rest to work with.
type wide struct {
	*assembler
	words [16]string // registers of the message schedule
}

func (w *wide) function() {
	w.prologue("compress16", 0)
	w.load()
	var s [8]string
	for i := range s {
		s[i] = fmt.Sprintf("Z%d", i)
		w.op("VMOVDQU32 %d(DI), %s", 64*i, s[i])
	}
	for i := range 64 {
		w.round(i, s)
		s = [8]string{s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6]}
	}
	for i, r := range s {
		w.op("VPADDD %d(DI), %s, %s", 64*i, r, r)
		w.op("VMOVDQU32 %s, %d(DI)", r, 64*i)
	}
	w.epilogue()
}

// load reads one block of every message and transposes the words, so that word i of all messages is in words[i].
func (w *wide) load() {
	const mask = "Z24"
	w.op("VMOVDQU32 bigEndian<>(SB), %s", mask)
	var rows [16]string
	for i := range rows {
		rows[i] = fmt.Sprintf("Z%d", 8+i)
		w.op("MOVQ %d(SI), AX", 8*i)
		w.op("VMOVDQU32 (AX)(DX*1), %s", rows[i])
		w.op("VPSHUFB %s, %s, %s", mask, rows[i], rows[i])
	}
	s := shuffler{w.assembler, "Z25"}
	s.quadruples(rows[:])
	for c := range 4 {
		a, b, d, e := &rows[c], &rows[4+c], &rows[8+c], &rows[12+c]
		s.mix(a, b, "VSHUFI32X4 $0x44,", "VSHUFI32X4 $0xee,")
		s.mix(d, e, "VSHUFI32X4 $0x44,", "VSHUFI32X4 $0xee,")
		s.mix(a, d, "VSHUFI32X4 $0x88,", "VSHUFI32X4 $0xdd,")
		s.mix(b, e, "VSHUFI32X4 $0x88,", "VSHUFI32X4 $0xdd,")
		w.words[c], w.words[4+c], w.words[8+c], w.words[12+c] = *a, *d, *b, *e
	}
}

func (w *wide) round(i int, s [8]string) {
	a, b, c, d, e, f, g, h := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	x, y, z := "Z26", "Z27", "Z28"
	if i >= 16 {
		w.schedule(i)
	}
	w.op("VPADDD.BCST %d(R8), %s, %s", 4*i, h, h)
	w.op("VPADDD %s, %s, %s", w.words[i%16], h, h)
	w.rotations(e, 6, 11, 25, x, y, z)
	w.op("VMOVDQA32 %s, %s", e, y)
	w.op("VPTERNLOGD $0xca, %s, %s, %s", g, f, y)
	w.op("VPADDD %s, %s, %s", x, h, h)
	w.op("VPADDD %s, %s, %s", y, h, h)
	w.op("VPADDD %s, %s, %s", h, d, d)
	w.rotations(a, 2, 13, 22, x, y, z)
	w.op("VMOVDQA32 %s, %s", a, y)
	w.op("VPTERNLOGD $0xe8, %s, %s, %s", c, b, y)
	w.op("VPADDD %s, %s, %s", x, h, h)
	w.op("VPADDD %s, %s, %s", y, h, h)
}

// rotations leaves in x the exclusive or of r rotated right by three amounts.
func (w *wide) rotations(r string, i, j, k int, x, y, z string) {
	w.op("VPRORD $%d, %s, %s", i, r, x)
	w.op("VPRORD $%d, %s, %s", j, r, y)
	w.op("VPRORD $%d, %s, %s", k, r, z)
	w.op("VPTERNLOGD $0x96, %s, %s, %s", z, y, x)
}

func (w *wide) schedule(i int) {
	x, y, z := "Z29", "Z30", "Z31"
	to := w.words[i%16]
	for _, t := range []struct {
		from       string
		i, j, down int
	}{{w.words[(i+1)%16], 7, 18, 3}, {w.words[(i+14)%16], 17, 19, 10}} {
		w.op("VPRORD $%d, %s, %s", t.i, t.from, x)
		w.op("VPRORD $%d, %s, %s", t.j, t.from, y)
		w.op("VPSRLD $%d, %s, %s", t.down, t.from, z)
		w.op("VPTERNLOGD $0x96, %s, %s, %s", z, y, x)
		w.op("VPADDD %s, %s, %s", x, to, to)
	}
	w.op("VPADDD %s, %s, %s", w.words[(i+9)%16], to, to)
}
