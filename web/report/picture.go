package report

import (
	"bytes"
	"unicode/utf8"
)

// Picture is a chart as a file of its own.
type Picture struct {
	Name string // of the file, without ".svg"
	SVG  []byte
}

// Of the head of a picture.
const (
	titleHeight  = 32.0
	legendHeight = 20.0
	letter       = 6.8 // an upper bound of the mean width of one
)

// Pictures returns the charts of a run as files.
func (r Report) Pictures() ([]Picture, error) { return pictures(r.charts()) }

func pictures(charts []*Chart) ([]Picture, error) {
	var out []Picture
	for _, c := range charts {
		keys, head := c.legend()
		var b bytes.Buffer
		if err := execute(&b, "picture", struct {
			*Chart
			Keys       []placed
			Head, Full float64
		}{c, keys, head, head + c.Height}); err != nil {
			return nil, err
		}
		out = append(out, Picture{c.Name, b.Bytes()})
	}
	return out, nil
}

// placed is a key of the legend with its place.
type placed struct {
	key
	X, Y float64
}

// legend places the keys in rows below the title, and returns where the rows end.
func (c *Chart) legend() (keys []placed, head float64) {
	x, y := c.Left, titleHeight
	for _, k := range c.Legend {
		wide := 36 + letter*float64(utf8.RuneCountInString(k.Text))
		if x > c.Left && x+wide > c.Right {
			x, y = c.Left, y+legendHeight
		}
		keys = append(keys, placed{k, x, y})
		x = round(x + wide)
	}
	return keys, y + legendHeight
}
