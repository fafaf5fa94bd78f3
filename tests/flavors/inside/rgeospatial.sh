#!/bin/bash
# A raster and a shape go through R's geospatial packages to a file that GDAL reads.
set -euo pipefail
cd "$(mktemp -d)"
Rscript - <<'END'
suppressMessages({
    library(sf); library(terra); library(stars); library(raster); library(lwgeom); library(gstat)
    library(spdep)
})
# A square kilometre around a place, in projected and in geographic coordinates.
place <- st_sfc(st_point(c(500000, 5500000)), crs = 32632)
square <- st_buffer(place, 500, endCapStyle = "SQUARE")
stopifnot(abs(as.numeric(st_area(square)) - 1e6) < 1)
globe <- st_transform(square, 4326)
stopifnot(abs(as.numeric(st_geod_area(globe)) / 1e6 - 1) < 0.01)

slope <- terra::rast(nrows = 20, ncols = 20, xmin = 0, xmax = 20, ymin = 0, ymax = 20, crs = "EPSG:32632")
terra::values(slope) <- terra::xyFromCell(slope, 1:400)[, 1]
left <- terra::crop(slope, terra::ext(0, 10, 0, 20))
stopifnot(terra::global(left, "mean")[1, 1] == 5)
terra::writeRaster(slope, "slope.tif")
cube <- stars::read_stars("slope.tif")
stopifnot(dim(cube) == c(20, 20), mean(cube[[1]]) == 10)
stopifnot(raster::cellStats(raster::raster("slope.tif"), "max") == 19.5)

# The midpoint between two measurements gets their mean. Each point on a line of five has its
# neighbours.
measured <- st_sf(z = c(1, 3), geometry = st_sfc(st_point(c(0, 0)), st_point(c(2, 0))))
between <- gstat::idw(z ~ 1, measured, st_sf(geometry = st_sfc(st_point(c(1, 0)))), debug.level = 0)
stopifnot(abs(between$var1.pred - 2) < 1e-9)
stopifnot(spdep::card(spdep::dnearneigh(cbind(1:5, 0), 0, 1.1)) == c(1, 2, 2, 2, 1))
END
gdalinfo -json slope.tif | python3 -c 'import json, sys; assert json.load(sys.stdin)["size"] == [20, 20]'
