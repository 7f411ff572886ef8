package kernel

import "math"

// Convert converts between integer types, wrapping around, and from integers to float32, rounding to nearest even.
// Booleans are read as 0 and 1 by way of Truth.
func Convert[D Number, S Integer](dst []D, x []S) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = D(x[i])
	}
}

// FloatTo converts float32 to integers: truncated toward zero, saturated to the range of the integers, NaN to 0.
func FloatTo[D Integer](dst []D, x []float32) {
	x = x[:len(dst)]
	lowest, highest := bounds[D]()
	low, high := float64(lowest), float64(highest)
	for i, v := range x {
		switch f := float64(v); {
		case f != f:
			dst[i] = 0
		case f <= low:
			dst[i] = lowest
		case f >= high: // for int64, high is 2^63, one above highest
			dst[i] = highest
		default:
			dst[i] = D(f)
		}
	}
}

func bounds[D Integer]() (lowest, highest D) {
	switch p := any(&lowest).(type) {
	case *int8:
		*p = math.MinInt8
	case *int32:
		*p = math.MinInt32
	case *int64:
		*p = math.MinInt64
	}
	return lowest, lowest - 1
}

// Truth converts to booleans: 0 if the element is zero, else 1 (NaN gives 1).
func Truth[S Number](dst []uint8, x []S) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] != 0)
	}
}
