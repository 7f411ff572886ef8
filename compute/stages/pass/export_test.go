package pass

// Pooled is the bytes of tensors that no task needs any more.
func (s *Stage) Pooled() (n int64) {
	for _, list := range s.pool {
		for _, x := range list {
			n += size(x.Shape)
		}
	}
	return n
}
