package benchmark

import "math"

// Rounded keeps a number of decimals of x.
func Rounded(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(scale*x) / scale
}

// Bar is a figure and the limit that it must reach.
type Bar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Bar   float64 `json:"bar"`
	Holds bool    `json:"holds"`
}

// AtLeast is a bar that a value must reach.
func AtLeast(name string, value, bar float64) Bar {
	return Bar{name, Rounded(value, 3), bar, value >= bar}
}

// Below is a bar that a value must stay below.
func Below(name string, value, bar float64) Bar {
	return Bar{name, Rounded(value, 3), bar, value < bar}
}

// AtMost is a bar that a value must not exceed.
func AtMost(name string, value, bar float64) Bar {
	return Bar{name, Rounded(value, 3), bar, value <= bar}
}

// Misses is the name of a bar that does not hold; "": it holds.
func (b Bar) Misses() string {
	if b.Holds {
		return ""
	}
	return b.Name
}

// OptionalBar is a bar of a bench that may lack a tool to measure it with. One that was not measured does not hold.
type OptionalBar struct {
	Name    string   `json:"name"`
	Value   *float64 `json:"value"` // null: it was not measured
	Bar     float64  `json:"bar"`
	Holds   bool     `json:"holds"`
	Missing string   `json:"missing,omitempty"` // the tool
}

// Measured writes the value as numbers are written, or names the tool that is missing.
func (b OptionalBar) Measured(number func(float64) string) string {
	if b.Value == nil {
		return "missing: " + b.Missing
	}
	return number(*b.Value)
}

// Misses is the name of a bar that was measured and does not hold; "": it holds, or was not measured.
func (b OptionalBar) Misses() string {
	if b.Holds || b.Value == nil {
		return ""
	}
	return b.Name
}
