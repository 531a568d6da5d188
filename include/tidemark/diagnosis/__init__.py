"""``tidemark doctor``: what this machine, the catalog, the sources and Airflow need and lack. It changes nothing."""
