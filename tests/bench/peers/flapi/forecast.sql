SELECT location, years, figures, housing FROM forecast WHERE zip_code = '{{{ params.zip_code }}}'
