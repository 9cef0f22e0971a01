// SPDX-License-Identifier: Apache-2.0

package releaseinfo

// allow refuses a pull spec that Options.Allow refuses. Image is the name that the caller uses.
func (r *Registry) allow(image, spec string) error {
	if r.options.Allow == nil {
		return nil
	}
	if err := r.options.Allow(spec); err != nil {
		return &Error{Reason: ReasonNotAllowed, Image: image, Err: err}
	}
	return nil
}

// allowMirror refuses a place of an image that is neither the image itself nor the place that an administrator's
// override gives it.
func (l *lookup) allowMirror(spec string) error {
	if spec == Override(l.image, l.options.Overrides) {
		return nil
	}
	return l.allow(l.image, spec)
}
