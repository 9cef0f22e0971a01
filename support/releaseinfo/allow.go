// SPDX-License-Identifier: Apache-2.0

package releaseinfo

// allow returns an error if Options.Allow refuses spec. image is the name that the caller uses.
func (r *Registry) allow(image, spec string) error {
	if r.options.Allow == nil {
		return nil
	}
	if err := r.options.Allow(spec); err != nil {
		return &Error{Reason: ReasonNotAllowed, Image: image, Err: err}
	}
	return nil
}

// allowMirror checks a location of an image. The image itself, and the location from an administrator's override, are
// always allowed.
func (l *lookup) allowMirror(spec string) error {
	if spec == Override(l.image, l.options.Overrides) {
		return nil
	}
	return l.allow(l.image, spec)
}
