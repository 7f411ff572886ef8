package codec

import "math"

const (
	levels = 256
	// sigmas is the total width of the quantiser in standard deviations: elements beyond 3 of them on either side share
	// the outermost codes, whose codebook entries are the means of what they hold.
	sigmas = 6
)

// encodeInt8 is the uniform 8-bit quantiser of the INTELLECT-1 run (Jaghouar et al. 2024, section 3): codes are
// round((x-mean)/scale)+128 clamped to a byte, scale is 6 standard deviations over 256, and the codebook holds the mean
// of the elements of every code. All statistics are float64, elements taken in order.
func encodeInt8(x []float32) []byte {
	mean, scale := statistics(x)
	codes := make([]byte, len(x))
	var sum [levels]float64
	var count [levels]int
	for i, v := range x {
		q := 128.0
		if scale > 0 {
			q += math.RoundToEven((float64(v) - mean) / scale)
		}
		c := byte(max(0, min(levels-1, q)))
		codes[i] = c
		sum[c] += float64(v)
		count[c]++
	}
	book := make([]float32, levels)
	for c := range book {
		if count[c] > 0 {
			book[c] = float32(sum[c] / float64(count[c]))
		}
	}
	return append(putFloats(make([]byte, 0, 4*levels+len(x)), book), codes...)
}

// statistics returns the mean and the width of one code; the width is 0 when all elements are equal or there is only
// one.
func statistics(x []float32) (mean, scale float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	if len(x) < 2 {
		return mean, 0
	}
	var squares float64
	for _, v := range x {
		d := float64(v) - mean
		squares += float64(d * d)
	}
	return mean, sigmas * math.Sqrt(squares/float64(len(x)-1)) / levels
}

func decodeInt8(dst []float32, payload []byte) error {
	var book [levels]float32
	getFloats(book[:], payload)
	if err := finite(book[:]); err != nil {
		return err
	}
	for i, c := range payload[4*levels:] {
		dst[i] = book[c]
	}
	return nil
}
