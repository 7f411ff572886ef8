package patch

// Gaps of one class are Golomb-Rice codes: a quotient in unary, ended by a 0, and the lower bits. How many lower bits
// there are follows from the gaps before, so that it fits their mean. Bits fill a byte from the lowest.
const (
	longQuotient = 24 // such a quotient stands for a gap of 32 bits that follows
	firstMean    = 16 // of gaps that are not known yet
	forgets      = 64 // gaps after which the mean counts half
)

// mean is the mean of gaps, as their sum and number.
type mean struct{ sum, n uint32 }

func (m *mean) lower() (bits uint) {
	if m.n == 0 {
		*m = mean{firstMean, 1}
	}
	for m.n<<bits < m.sum {
		bits++
	}
	return bits
}

func (m *mean) add(gap uint32) {
	if m.n == forgets {
		m.sum, m.n = m.sum/2, m.n/2
	}
	m.sum += min(gap, 1<<24)
	m.n++
}

// gapWriter writes the gaps of one class.
type gapWriter struct {
	bits    bitWriter
	mean    mean
	gap     uint32 // since the last changed element
	changed uint32
}

// change says that the next element is changed.
func (g *gapWriter) change() {
	lower := g.mean.lower()
	if q := g.gap >> lower; q < longQuotient {
		g.bits.write(1<<q-1, uint(q)+1)
		g.bits.write(uint64(g.gap)&(1<<lower-1), lower)
	} else {
		g.bits.write(1<<longQuotient-1, longQuotient)
		g.bits.write(uint64(g.gap), 32)
	}
	g.mean.add(g.gap)
	g.gap = 0
	g.changed++
}

// bitWriter writes bits.
type bitWriter struct {
	b    []byte
	bits uint64
	n    uint
}

func (w *bitWriter) write(bits uint64, n uint) {
	w.bits |= bits << w.n
	w.n += n
	for w.n >= 8 {
		w.b = append(w.b, byte(w.bits))
		w.bits >>= 8
		w.n -= 8
	}
}

// end returns all bytes.
func (w *bitWriter) end() []byte {
	if w.n > 0 {
		w.b = append(w.b, byte(w.bits))
	}
	return w.b
}

// gapReader reads the gaps of one class.
type gapReader struct {
	b    []byte
	at   uint // bits that were read
	mean mean
	left uint32 // changed elements, the next among them
	gap  uint32 // elements before the next
	cut  bool   // the bits have ended too early
}

// next reads the next gap, if a changed element is left.
func (g *gapReader) next() {
	if g.left == 0 {
		return
	}
	lower, q := g.mean.lower(), uint32(0)
	for q < longQuotient && g.read(1) == 1 {
		q++
	}
	if g.gap = q<<lower | g.read(lower); q == longQuotient {
		g.gap = g.read(32-lower)<<lower | g.gap&(1<<lower-1)
	}
	g.mean.add(g.gap)
}

func (g *gapReader) read(n uint) (bits uint32) {
	if g.at+n > uint(len(g.b))*8 {
		g.cut = true
		return 0
	}
	for k := range n {
		bits |= uint32(g.b[g.at/8]>>(g.at%8)&1) << k
		g.at++
	}
	return bits
}
