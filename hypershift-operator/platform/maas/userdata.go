// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/maas"
)

// cloudInitSystems are the operating systems, as MAAS names them, whose images use cloud-init.
var cloudInitSystems = map[string]bool{"ubuntu": true, "debian": true}

// ubuntuReleases are the Ubuntu releases since 22.04, by all names that MAAS accepts without "ubuntu/".
var ubuntuReleases = map[string]bool{
	"jammy": true, "kinetic": true, "lunar": true, "mantic": true, "noble": true, "oracular": true, "plucky": true, "questing": true, "resolute": true,
	"22.04": true, "22.10": true, "23.04": true, "23.10": true, "24.04": true, "24.10": true, "25.04": true, "25.10": true, "26.04": true,
}

// UserDataFormat returns the format that the pool sets, or else the one that MAAS reports for its image. It uses the
// image's name only if MAAS is unreachable or does not list the image. A change of the format replaces machines, so the
// format is kept in an annotation as long as the pool names the same image. A pool with machines keeps the format that
// they were created with.
func (p *Platform) UserDataFormat(ctx context.Context, c client.Reader, pool platform.Pool, running bool) (platform.UserData, error) {
	said, decided := byPool(pool)
	if decided {
		return said, nil
	}
	image := cmp.Or(settings(pool).Image, byDistribution[pool.Distribution()].image)
	if kept, ok := recall(pool.NodePool, image); ok {
		return kept, nil
	}
	named := platform.UserData{Format: byName(image), Why: "as the name of the image " + image + " says"}
	if running {
		named.Keep = remember(image, named)
		return named, nil
	}
	cfg, usable, err := usersConfig(ctx, c, pool.HostedCluster)
	if err != nil {
		return platform.UserData{}, err
	}
	if !usable {
		return named, nil // PlatformCredentialsFound reports the problem.
	}
	result := p.images.ask(ctx, pool.HostedCluster.Namespace, cfg)
	named.Again = result.again
	if !result.known {
		return platform.UserData{Waiting: "Waiting for MAAS to say what the image " + image + " is made of", Again: result.again}, nil
	}
	if unasked := result.err; unasked != nil {
		named.Why += ", since MAAS could not be asked: " + maas.Public(unasked)
		return named, nil
	}
	found := slices.IndexFunc(result.value, func(r maas.BootResource) bool { return is(r, image) })
	if found < 0 {
		named.Why += ", since MAAS lists no such image"
		return named, nil
	}
	chosen := byResource(image, result.value[found])
	chosen.Keep = remember(image, chosen)
	return chosen, nil
}

// byPool returns the format if it does not depend on the image's metadata.
func byPool(pool platform.Pool) (platform.UserData, bool) {
	block := settings(pool)
	switch {
	case block.UserDataFormat != "":
		return platform.UserData{Format: block.UserDataFormat, Why: "as spec.platform.maas.userDataFormat says"}, true
	case distributions.Of(pool.Distribution()).OwnOperators:
		return platform.UserData{Format: hyperv1.UserDataIgnition, Why: "as CoreOS reads"}, true
	case block.DiskWipe != nil && ptr.Deref(block.DiskWipe.Enabled, false):
		return platform.UserData{Format: hyperv1.UserDataIgnition, Why: "as images with a partition that spec.platform.maas.diskWipe removes read"}, true
	}
	return platform.UserData{}, false
}

func byName(image string) hyperv1.UserDataFormat {
	if readsCloudConfig(image) {
		return hyperv1.UserDataCloudConfig
	}
	return hyperv1.UserDataIgnition
}

// byResource chooses the format by the source of the image in MAAS. A synced image runs cloud-init. An uploaded custom
// image may declare its base image. A custom image without a base image uses Ignition, the only format of older pools.
func byResource(image string, r maas.BootResource) platform.UserData {
	cloudConfig := func(why string) platform.UserData {
		return platform.UserData{Format: hyperv1.UserDataCloudConfig, Why: "since MAAS says that " + why}
	}
	system, _, named := strings.Cut(r.Name, "/")
	base, _, _ := strings.Cut(r.BaseImage, "/")
	switch {
	case r.Type == "Synced":
		return cloudConfig(fmt.Sprintf("it brings the image %s itself", image))
	case named && cloudInitSystems[system]:
		return cloudConfig(fmt.Sprintf("the operating system of %s is %s", image, system))
	case cloudInitSystems[base]:
		return cloudConfig(fmt.Sprintf("%s is made of %s", image, r.BaseImage))
	case r.BaseImage != "":
		return platform.UserData{Format: hyperv1.UserDataIgnition, Why: fmt.Sprintf("since MAAS says that %s is made of %s", image, r.BaseImage)}
	}
	return platform.UserData{Format: hyperv1.UserDataIgnition, Why: fmt.Sprintf(
		"since MAAS does not say what the custom image %s is made of: if it runs cloud-init, set spec.platform.maas.userDataFormat to CloudConfig", image)}
}

// is reports whether a deployment with this image name uses the boot resource. MAAS lists an uploaded custom image
// without its prefix, and accepts its own images by their series.
func is(r maas.BootResource, image string) bool {
	_, series, named := strings.Cut(r.Name, "/")
	return r.Name == image || named && series == image || !named && r.Type == "Uploaded" && "custom/"+r.Name == image
}

// remember formats a choice and its image for the annotation.
func remember(image string, chosen platform.UserData) string {
	return string(chosen.Format) + " of " + image + ", " + chosen.Why
}

// recall parses the annotation that remember formatted, if it is about the same image.
func recall(pool *hyperv1.NodePool, image string) (platform.UserData, bool) {
	kept := pool.Annotations[hyperv1.NodePoolUserDataFormatAnnotation]
	format, rest, _ := strings.Cut(kept, " of ")
	of, why, whole := strings.Cut(rest, ", ")
	choice := platform.UserData{Format: hyperv1.UserDataFormat(format), Why: why, Keep: kept}
	known := choice.Format == hyperv1.UserDataCloudConfig || choice.Format == hyperv1.UserDataIgnition
	return choice, whole && known && of == image
}

// usersConfig returns the user's credentials; usable is false while they are missing or malformed.
func usersConfig(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (cfg maas.Config, usable bool, err error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: hc.Namespace, Name: spec(hc).IdentityRef.Name}
	if err := c.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return cfg, false, nil
		}
		return cfg, false, fmt.Errorf("reading the MAAS credentials in Secret %s: %w", key, err)
	}
	cfg, err = maas.ConfigFromSecret(secret.Data)
	return cfg, err == nil, nil
}

// Images lists the images of a MAAS.
type Images func(ctx context.Context, cfg maas.Config) ([]maas.BootResource, error)

func listImages(ctx context.Context, c *maas.Client) ([]maas.BootResource, error) {
	return c.ListBootResources(ctx, maas.ImagesAll)
}

// readsCloudConfig reports whether an image is Ubuntu or Debian, by its name.
func readsCloudConfig(image string) bool {
	system, _, named := strings.Cut(image, "/")
	return named && cloudInitSystems[system] || !named && ubuntuReleases[image]
}

// validateUserData rejects a format that no machine could read. It can only decide once the payload is known.
func validateUserData(pool platform.Pool) error {
	block := settings(pool)
	own := distributions.Of(pool.Distribution()).OwnOperators
	format := block.UserDataFormat
	if format == "" && !own {
		format = byName(block.Image)
	}
	if pool.Distribution() == "" || format != hyperv1.UserDataCloudConfig {
		return nil
	}
	if own {
		return errors.New("spec.platform.maas.userDataFormat is CloudConfig, but the nodes of an OpenShift release run CoreOS, which reads Ignition only: " +
			"leave the field out, and name an RHCOS image in spec.platform.maas.image")
	}
	if wipe := block.DiskWipe; wipe != nil && ptr.Deref(wipe.Enabled, false) {
		return errors.New("spec.platform.maas.diskWipe.enabled goes with userDataFormat Ignition only: an image with cloud-init carries no helper " +
			"partition; set it to false")
	}
	return nil
}
